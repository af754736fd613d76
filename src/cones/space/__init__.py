"""The search space: bounds."""
