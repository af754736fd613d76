"""Plots of any run. Importing this brings in no matplotlib; drawing does."""

from cones.plots.plot import plot

__all__ = ["plot"]
