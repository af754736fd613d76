"""Divergences, which define the ball around a belief."""

from cones.divergences.divergence import Ball, Divergence, Lagrangian, Point
from cones.divergences.kl import KL

__all__ = ["KL", "Ball", "Divergence", "Lagrangian", "Point"]
