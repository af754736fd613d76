"""Refinements of the gradient: the one stage in which ES, NES and CoNES differ."""

from cones.refine.convex import Convex
from cones.refine.natural import Natural
from cones.refine.plain import Plain
from cones.refine.refinement import Direction, Refinement

__all__ = ["Convex", "Direction", "Natural", "Plain", "Refinement"]
