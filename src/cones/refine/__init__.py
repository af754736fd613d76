"""Refinements of the gradient: the one stage in which ES, NES and CoNES differ."""

from cones.refine.balls import Balls, BallsMemory
from cones.refine.convex import Convex
from cones.refine.natural import Natural
from cones.refine.plain import Plain
from cones.refine.refinement import Direction, Radii, Refinement, Situation

__all__ = ["Balls", "BallsMemory", "Convex", "Direction", "Natural", "Plain", "Radii", "Refinement", "Situation"]
