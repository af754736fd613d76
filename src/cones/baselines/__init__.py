"""Methods of others behind the same ask and tell."""

from cones.baselines.cma import CMA, CMAStrategy

__all__ = ["CMA", "CMAStrategy"]
