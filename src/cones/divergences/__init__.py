"""Divergences, which define the ball around a belief."""

from cones.divergences.divergence import CHARTS, Ball, Chart, Divergence, Lagrangian, Point
from cones.divergences.kl import KL
from cones.divergences.renyi import ChiSquared, Hellinger, Renyi, ReverseKL

__all__ = [
    "CHARTS",
    "KL",
    "Ball",
    "Chart",
    "ChiSquared",
    "Divergence",
    "Hellinger",
    "Lagrangian",
    "Point",
    "Renyi",
    "ReverseKL",
]
