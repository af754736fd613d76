r"""What all Gaussian beliefs N(mean, L L^T) share.

The *frame* of a Gaussian is a factor L of its covariance. In the frame the belief is N(0, I), and a step is a pair
(m, S): the mean moves by L m and the covariance becomes L exp(S) L^T. Gradients and steps are expressed in the frame:

    KL( moved || self ) = 1/2 ( |m|^2 + sum( exp(s) - 1 - s ) ),     s the eigenvalues of S
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from cones.beliefs.belief import Belief
from cones.beliefs.gaussian.matrices import FrameMatrix
from cones.types import Matrix, Vector

__all__ = ["FrameGradient", "Gaussian", "Gradient", "NoiseRows"]


@dataclass(frozen=True)
class Gradient:
    r"""The gradient of the expected loss with respect to the parameters of a Gaussian belief.

    Args:
        mean: dl/dmu, shape (n,).
        covariance: dl/dsigma^2, shape (n,), for a `DiagonalGaussian`;
            dl/dSigma, shape (n, n) and symmetric, for a `FullGaussian`.
    """

    mean: ArrayLike
    covariance: ArrayLike


class FrameGradient(NamedTuple):
    """A gradient in the frame: a = L^T dl/dmu and B = L^T (dl/dSigma) L (= dl/dS at S = 0)."""

    mean: Vector
    covariance: FrameMatrix


class NoiseRows(Protocol):
    """Rows of noise, shape (k, n). They need not all be in memory at once."""

    def matrix(self) -> Matrix:
        """All rows as one array."""
        ...

    def over_columns(self, use: Callable[[slice, Iterator[tuple[slice, Matrix, Matrix]]], None]) -> None:
        """Call `use(columns, blocks)` for slices that cover all columns, on all cores.

        `blocks` yields the rows in those columns, a few at a time: (slice of rows, their normals, scratch array of the
        same shape). The scratch array may be the normals themselves. Write to nothing else.
        """
        ...

    def over_spans(self, use: Callable[[slice, Matrix], None]) -> None:
        """Call `use(columns, normals)` for slices that cover all columns, in their order, with all rows in them.

        One after the other, for products of matrices, which use all cores by themselves. Do not write to `normals`.
        """
        ...


class Gaussian(Belief):
    """A Gaussian distribution over candidates."""

    @property
    @abstractmethod
    def covariance_freedom(self) -> int:
        """Degrees of freedom of the covariance."""

    @abstractmethod
    def to_frame(self, shift: Vector) -> Vector:
        """L^-1 shift: a displacement of candidates, expressed in the frame."""

    @abstractmethod
    def from_frame(self, shift: Vector) -> Vector:
        """L m: a displacement in the frame, expressed in the space of candidates."""

    @abstractmethod
    def gradient_from_frame(self, gradient: Vector) -> Vector:
        """L^-T a: the gradient dl/dmu for a gradient `a` in the frame."""

    @abstractmethod
    def whiten(self, gradient: Gradient) -> FrameGradient:
        """The gradient in the frame; checks shapes and finiteness."""

    @abstractmethod
    def moments(self, rows: NoiseRows, odd: Vector, even: Vector) -> tuple[Vector, FrameMatrix]:
        """sum_i odd_i z_i, and sum_i even_i z_i z_i^T projected onto this family's covariances."""

    @abstractmethod
    def natural_gradient(self, gradient: Gradient) -> Gradient:
        """F^-1 gradient in the coordinates (mean, covariance); F is the Fisher information."""

    def restarted(self, mean: Vector, factor: float) -> Self:
        """The initial belief of a restart: at another mean, with the standard deviations times a factor."""
        return self.start(mean, factor * self.standard_deviations())

    def widened(self, least: Vector) -> Self:
        """The belief with standard deviations of at least `least`, its correlations unchanged."""
        factors = np.maximum(least / self.standard_deviations(), 1.0)
        return self.scaled(factors) if (factors > 1.0).any() else self

    @abstractmethod
    def scaled(self, factors: Vector) -> Self:
        """The belief with each coordinate's deviation multiplied by a factor."""

    @abstractmethod
    def log_determinant(self) -> float:
        """log det of the covariance."""

    def entropy(self) -> float:
        """Differential entropy in nats."""
        return 0.5 * (self.dim * (1.0 + math.log(2.0 * math.pi)) + self.log_determinant())

    def log_density(self, candidates: Matrix) -> Vector:
        frame = self.rows_to_frame(np.atleast_2d(candidates))
        constant = self.dim * math.log(2.0 * math.pi) + self.log_determinant()
        return np.asarray(-0.5 * (np.einsum("ij,ij->i", frame, frame) + constant))

    def rows_to_frame(self, candidates: Matrix) -> Matrix:
        """L^-1 (x - mean) for each row x."""
        return self._rows_to_frame(candidates - self.mean)

    @abstractmethod
    def _rows_to_frame(self, shifts: Matrix) -> Matrix:
        """L^-1 shift for each row."""
