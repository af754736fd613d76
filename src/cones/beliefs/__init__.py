"""Beliefs: distributions over candidates."""

from cones.beliefs.belief import Belief
from cones.beliefs.gaussian.diagonal import DiagonalGaussian
from cones.beliefs.gaussian.encodings import (
    ENCODINGS,
    decode,
    encode,
    gradient_from_encoding,
    gradient_to_encoding,
)
from cones.beliefs.gaussian.full import FullGaussian
from cones.beliefs.gaussian.gaussian import FrameGradient, Gaussian, Gradient
from cones.beliefs.gaussian.matrices import DiagonalMatrix, FrameMatrix, SpectralMatrix
from cones.beliefs.step import Step, StepStatus

__all__ = [
    "ENCODINGS",
    "Belief",
    "DiagonalGaussian",
    "DiagonalMatrix",
    "FrameGradient",
    "FrameMatrix",
    "FullGaussian",
    "Gaussian",
    "Gradient",
    "SpectralMatrix",
    "Step",
    "StepStatus",
    "decode",
    "encode",
    "gradient_from_encoding",
    "gradient_to_encoding",
]
