"""Divergences, which define the ball around a belief."""

from cones.divergences.divergence import Ball, Divergence, Lagrangian, Point
from cones.divergences.kl import KL
from cones.divergences.renyi import ChiSquared, Hellinger, Renyi, ReverseKL

__all__ = ["KL", "Ball", "ChiSquared", "Divergence", "Hellinger", "Lagrangian", "Point", "Renyi", "ReverseKL"]
