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
from cones.beliefs.gaussian.low_rank import LowRankGaussian, default_rank
from cones.beliefs.gaussian.matrices import DiagonalMatrix, FrameMatrix, SpectralMatrix
from cones.beliefs.gaussian.spanned import Span, SpannedMatrix
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
    "LowRankGaussian",
    "Span",
    "SpannedMatrix",
    "SpectralMatrix",
    "Step",
    "StepStatus",
    "decode",
    "default_rank",
    "encode",
    "gradient_from_encoding",
    "gradient_to_encoding",
]
