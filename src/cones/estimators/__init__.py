"""Estimators of the gradient of the expected loss."""

from cones.estimators.score_function import score_function

__all__ = ["score_function"]
