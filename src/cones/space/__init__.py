"""The search space: named parameters, bounds and constraints."""
