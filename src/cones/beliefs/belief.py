r"""The interface of a Gaussian belief N(mean, L L^T) and the gradients that live on it.

A belief carries a *frame*, a factor L of its covariance. In the frame the belief is N(0, I), and a
change of belief is a pair (m, S): the mean moves by L m and the covariance becomes L exp(S) L^T. All
stages of an iteration speak of gradients and changes in the frame.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from cones.beliefs.gaussian.spectral import Spectral
from cones.errors import InputError
from cones.kernels.spans import inner
from cones.types import Matrix, Vector

if TYPE_CHECKING:
    from cones.sampling.block import Rows

__all__ = ["Belief", "FrameGradient", "Gradient"]


@dataclass(frozen=True)
class Gradient:
    r"""The gradient of an expected loss in the parameters of a Gaussian belief.

    Args:
        mean: dl/dmu, shape (n,).
        covariance: dl/dsigma^2, shape (n,), for a `DiagonalGaussian`;
            dl/dSigma, shape (n, n) and symmetric, for a `FullGaussian`.
    """

    mean: ArrayLike
    covariance: ArrayLike


@dataclass(frozen=True)
class FrameGradient:
    """A gradient in the frame: a = L^T dl/dmu and B = L^T (dl/dSigma) L (= dl/dS at S = 0)."""

    mean: Vector
    covariance: Spectral


class Belief(ABC):
    """A Gaussian over candidates. Immutable: its arrays are read-only."""

    mean: Vector
    separable: ClassVar[bool]  # whether L is diagonal, so that coordinates can be dealt with apart from each other

    @property
    def dim(self) -> int:
        return self.mean.size

    @property
    @abstractmethod
    def covariance_freedom(self) -> int:
        """How many numbers the covariance can vary in."""

    def candidates(self, noise: Matrix) -> Matrix:
        """Candidates mean + L z, one per row z of `noise`."""
        return self.mean + self.displacements(noise)

    @abstractmethod
    def displacements(self, noise: Matrix, out: Matrix | None = None, columns: slice | None = None) -> Matrix:
        """L z for each row z of `noise`, written to `out` if given.

        A separable belief takes `columns`, the coordinates that `noise` is of.
        """

    @abstractmethod
    def to_frame(self, shift: Vector) -> Vector:
        """L^-1 shift: a displacement of candidates, in the frame."""

    @abstractmethod
    def from_frame(self, shift: Vector, out: Vector | None = None) -> Vector:
        """L m: a displacement in the frame, among the candidates; `out` may be used for it, and may be `shift`."""

    @abstractmethod
    def gradient_from_frame(self, gradient: Vector) -> Vector:
        """L^-T a: the gradient in the mean that is `a` in the frame."""

    @abstractmethod
    def whiten(self, gradient: Gradient) -> FrameGradient:
        """The gradient in the frame; checks shapes and finiteness."""

    @abstractmethod
    def moments(self, rows: Rows, odd: Vector, even: Vector) -> tuple[Vector, Spectral]:
        """sum_i odd_i z_i, and sum_i even_i z_i z_i^T as far as this family of beliefs can follow it."""

    @abstractmethod
    def moved(self, shift: Vector, log_ratio: Spectral) -> Self:
        """The belief N(mean + shift, L exp(log_ratio) L^T)."""

    def kl_of_move(self, shift: Vector, log_ratio: Spectral) -> float:
        """KL( moved(shift, log_ratio) || self ), without forming the moved belief."""
        whitened = self.to_frame(shift)
        logs = log_ratio.spectrum()
        with np.errstate(over="ignore"):  # infinite is a true answer
            return 0.5 * float(whitened @ whitened + (np.expm1(logs) - logs).sum())

    @abstractmethod
    def natural_gradient(self, gradient: Gradient) -> Gradient:
        """F^-1 gradient in the chart (mean, covariance), F being the Fisher information."""

    @abstractmethod
    def kl(self, other: Self) -> float:
        """KL( self || other )."""

    def _check_same_kind(self, other: object) -> None:
        if type(other) is not type(self) or not isinstance(other, Belief) or other.dim != self.dim:
            raise InputError(f"other: expected a {type(self).__name__} of {self.dim} dimensions, got {other!r}")

    @abstractmethod
    def log_determinant(self) -> float:
        """log det of the covariance."""

    def entropy(self) -> float:
        """Differential entropy in nats."""
        return 0.5 * (self.dim * (1.0 + math.log(2.0 * math.pi)) + self.log_determinant())

    @abstractmethod
    def standard_deviations(self) -> Vector:
        """The standard deviation of each coordinate."""

    def spread(self) -> float:
        """Root of the mean variance per coordinate."""
        deviations = self.standard_deviations()
        return math.sqrt(inner(deviations, deviations) / self.dim)

    @abstractmethod
    def encode(self, encoding: str) -> Vector:
        """The covariance as the parameters of an encoding; see `cones.beliefs.gaussian.encodings`."""

    @classmethod
    @abstractmethod
    def decode(cls, mean: ArrayLike, parameters: ArrayLike, encoding: str) -> Self:
        """The belief with this mean whose `encode(encoding)` is `parameters`."""

    @abstractmethod
    def gradient_to_encoding(self, gradient: Gradient, encoding: str) -> Gradient:
        """Chain rule from the covariance to the parameters of an encoding."""

    @abstractmethod
    def gradient_from_encoding(self, gradient: Gradient, encoding: str) -> Gradient:
        """Chain rule from the parameters of an encoding to the covariance."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """What `from_state` needs to rebuild this belief bit for bit."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: dict[str, Any]) -> Self: ...
