"""The search space: named parameters and bounds."""
