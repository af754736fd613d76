"""Gaussian beliefs over candidates."""

from cones.beliefs.belief import Belief, FrameGradient, Gradient
from cones.beliefs.gaussian.diagonal import DiagonalGaussian
from cones.beliefs.gaussian.encodings import ENCODINGS
from cones.beliefs.gaussian.full import FullGaussian
from cones.beliefs.gaussian.spectral import Spectral

__all__ = ["ENCODINGS", "Belief", "DiagonalGaussian", "FrameGradient", "FullGaussian", "Gradient", "Spectral"]
