"""The search space: bounds and constraints."""
