"""Gaussian beliefs over candidates."""

from cones.beliefs.belief import Belief, FrameGradient, Gradient
from cones.beliefs.diagonal import DiagonalGaussian
from cones.beliefs.encodings import ENCODINGS
from cones.beliefs.full import FullGaussian
from cones.beliefs.spectral import Spectral

__all__ = ["ENCODINGS", "Belief", "DiagonalGaussian", "FrameGradient", "FullGaussian", "Gradient", "Spectral"]
