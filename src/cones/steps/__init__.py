"""Refinements of the gradient: the one stage in which ES, NES and CoNES differ."""

from cones.steps.balls import Balls, BallsMemory
from cones.steps.convex import Convex
from cones.steps.natural import Natural
from cones.steps.plain import Plain
from cones.steps.step import Direction, Radii, Refinement, Situation

__all__ = ["Balls", "BallsMemory", "Convex", "Direction", "Natural", "Plain", "Radii", "Refinement", "Situation"]
