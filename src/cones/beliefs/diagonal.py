"""The Gaussian with a diagonal covariance: O(n) in everything."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from cones.beliefs.belief import Belief, FrameGradient, Gradient
from cones.beliefs.encodings import DIAGONAL, ENCODINGS, Encoding
from cones.beliefs.spectral import Spectral
from cones.checks import check_one_of, check_vector
from cones.types import Matrix, Vector

__all__ = ["DiagonalGaussian"]

# Variances stay where their square roots and reciprocals are ordinary numbers.
SMALLEST_VARIANCE, LARGEST_VARIANCE = 1e-300, 1e300
# Rows of noise whose squares are formed at a time: they stay in the cache.
BLOCK = 8


class DiagonalGaussian(Belief):
    """N(mean, diag(variance)).

    Args:
        mean: shape (n,).
        variance: shape (n,), or one number for all coordinates; positive.

    Example:
        >>> belief = DiagonalGaussian([0.0, 0.0], [1.0, 4.0])
        >>> belief.candidates(np.array([[1.0, 1.0]]))
        array([[1., 2.]])
        >>> round(belief.kl(DiagonalGaussian([1.0, 0.0], [1.0, 4.0])), 6)
        0.5
    """

    def __init__(self, mean: ArrayLike, variance: ArrayLike) -> None:
        self.mean: Vector = check_vector("mean", mean).copy()
        self.variance: Vector = check_vector("variance", variance, self.dim, positive=True).copy()
        self._deviation = np.sqrt(self.variance)
        self._freeze()

    @classmethod
    def _trusted(cls, mean: Vector, variance: Vector) -> Self:
        """Without the checks, for beliefs that the library has computed itself."""
        self = cls.__new__(cls)
        self.mean, self.variance = mean, variance
        self._deviation = np.sqrt(variance)
        self._freeze()
        return self

    def _freeze(self) -> None:
        for array in (self.mean, self.variance, self._deviation):
            array.flags.writeable = False

    def __repr__(self) -> str:
        return f"DiagonalGaussian(dim={self.dim}, spread={self.spread():.3g})"

    def displacements(self, noise: Matrix, out: Matrix | None = None) -> Matrix:
        return np.multiply(noise, self._deviation, out=out)

    def to_frame(self, shift: Vector) -> Vector:
        return shift / self._deviation

    def from_frame(self, shift: Vector) -> Vector:
        return shift * self._deviation

    def gradient_from_frame(self, gradient: Vector) -> Vector:
        return gradient / self._deviation

    def whiten(self, gradient: Gradient) -> FrameGradient:
        mean, covariance = self._checked(gradient)
        return FrameGradient(mean * self._deviation, Spectral(covariance * self.variance))

    def second_moment(self, noise: Matrix, weights: Vector) -> Spectral:
        moment = np.zeros(self.dim)
        for start in range(0, len(noise), BLOCK):
            rows = noise[start : start + BLOCK]
            moment += weights[start : start + BLOCK] @ (rows * rows)
        return Spectral(moment)

    def moved(self, shift: Vector, log_ratio: Spectral) -> Self:
        with np.errstate(over="ignore"):
            variance = self.variance * np.exp(log_ratio.values)
        return self._trusted(self.mean + shift, np.clip(variance, SMALLEST_VARIANCE, LARGEST_VARIANCE))

    def natural_gradient(self, gradient: Gradient) -> Gradient:
        mean, covariance = self._checked(gradient)
        return Gradient(self.variance * mean, 2.0 * self.variance**2 * covariance)

    def kl(self, other: Self) -> float:
        self._check_same_kind(other)
        difference = (self.mean - other.mean) / other._deviation
        logs = np.log(self.variance / other.variance)
        return 0.5 * float(difference @ difference + (np.expm1(logs) - logs).sum())

    def log_determinant(self) -> float:
        return float(np.log(self.variance).sum())

    def standard_deviations(self) -> Vector:
        return self._deviation

    def encode(self, encoding: str) -> Vector:
        return _encoding(encoding).encode(self.variance)

    @classmethod
    def decode(cls, mean: ArrayLike, parameters: ArrayLike, encoding: str) -> Self:
        return cls(mean, _encoding(encoding).decode(check_vector("parameters", parameters)))

    def gradient_to_encoding(self, gradient: Gradient, encoding: str) -> Gradient:
        mean, covariance = self._checked(gradient)
        return Gradient(mean, _encoding(encoding).push(self.variance, covariance))

    def gradient_from_encoding(self, gradient: Gradient, encoding: str) -> Gradient:
        mean, parameters = self._checked(gradient)
        return Gradient(mean, _encoding(encoding).pull(self.variance, parameters))

    def state(self) -> dict[str, Any]:
        return {"mean": self.mean, "variance": self.variance}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        return cls(state["mean"], state["variance"])

    def _checked(self, gradient: Gradient) -> tuple[Vector, Vector]:
        mean = check_vector("gradient.mean", gradient.mean, self.dim)
        return mean, check_vector("gradient.covariance", gradient.covariance, self.dim)


def _encoding(name: str) -> Encoding:
    return DIAGONAL[check_one_of("encoding", name, ENCODINGS)]
