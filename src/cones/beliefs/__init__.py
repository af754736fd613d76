"""Beliefs: distributions over candidates."""

from cones.beliefs.belief import Belief
from cones.beliefs.families.bernoulli import Bernoulli
from cones.beliefs.families.categorical import Categorical
from cones.beliefs.families.family import ExponentialFamily, FamilyGradient
from cones.beliefs.families.poisson import Poisson
from cones.beliefs.families.product import Product, ProductGradient, ProductMatrix
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
    "Bernoulli",
    "Categorical",
    "DiagonalGaussian",
    "DiagonalMatrix",
    "ExponentialFamily",
    "FamilyGradient",
    "FrameGradient",
    "FrameMatrix",
    "FullGaussian",
    "Gaussian",
    "Gradient",
    "LowRankGaussian",
    "Poisson",
    "Product",
    "ProductGradient",
    "ProductMatrix",
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
