"""The Gaussian with a diagonal covariance: O(n) in everything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from cones.beliefs.belief import Belief, FrameGradient, Gradient
from cones.beliefs.gaussian.encodings import DIAGONAL, ENCODINGS, Encoding
from cones.beliefs.gaussian.spectral import Spectral
from cones.checks import check_one_of, check_vector
from cones.kernels.buffers import aligned, new_vector
from cones.kernels.spans import for_each_span, for_each_tile, inner, tile_count, weighted_sum
from cones.types import Matrix, Vector

if TYPE_CHECKING:
    from cones.sampling.block import Rows

__all__ = ["DiagonalGaussian"]

# Deviations stay where their squares and reciprocals are ordinary numbers.
DEVIATIONS = {np.dtype("float64"): (1e-150, 1e150), np.dtype("float32"): (1e-18, 1e18)}


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

    separable = True

    def __init__(self, mean: ArrayLike, variance: ArrayLike) -> None:
        self.mean: Vector = check_vector("mean", mean).copy()
        self.deviation: Vector = np.sqrt(check_vector("variance", variance, self.dim, positive=True))
        self._freeze()

    @classmethod
    def from_deviation(cls, mean: Vector, deviation: Vector) -> Self:
        """N(mean, diag(deviation^2)), of arrays that the library has made itself: unchecked, not copied."""
        self = cls.__new__(cls)
        self.mean, self.deviation = mean, deviation
        self._freeze()
        return self

    def _freeze(self) -> None:
        self.mean.flags.writeable = self.deviation.flags.writeable = False

    @property
    def covariance_freedom(self) -> int:
        return self.dim

    @property
    def variance(self) -> Vector:
        return np.square(self.deviation)

    def as_type(self, dtype: str) -> Self:
        """The belief with numbers of another type."""
        return self.from_deviation(self.mean.astype(dtype), self.deviation.astype(dtype))

    def __reduce__(self) -> tuple[Any, ...]:
        return self.from_deviation, (self.mean, self.deviation)

    def __repr__(self) -> str:
        return f"DiagonalGaussian(dim={self.dim}, spread={self.spread():.3g})"

    def displacements(self, noise: Matrix, out: Matrix | None = None, columns: slice | None = None) -> Matrix:
        deviation = self.deviation if columns is None else self.deviation[columns]
        return np.multiply(noise, deviation, out=out)

    def to_frame(self, shift: Vector) -> Vector:
        return shift / self.deviation

    def from_frame(self, shift: Vector, out: Vector | None = None) -> Vector:
        return np.multiply(shift, self.deviation, out=out)

    def gradient_from_frame(self, gradient: Vector) -> Vector:
        return gradient / self.deviation

    def whiten(self, gradient: Gradient) -> FrameGradient:
        mean, covariance = self._checked(gradient)
        return FrameGradient(mean * self.deviation, Spectral(covariance * self.variance))

    def moments(self, rows: Rows, odd: Vector, even: Vector) -> tuple[Vector, Spectral]:
        first, second = (new_vector(self.dim, self.mean.dtype) for _ in range(2))
        odd, even = odd.astype(first.dtype), even.astype(first.dtype)

        def use(columns: slice, blocks: Iterator[tuple[slice, Matrix, Matrix]]) -> None:
            mean, moment = first[columns], second[columns]
            mean[:] = moment[:] = 0.0
            of_block = aligned(mean.shape, mean.dtype)
            for which, normals, squares in blocks:
                mean += weighted_sum(odd[which], normals, of_block)
                np.multiply(normals, normals, out=squares)
                moment += weighted_sum(even[which], squares, of_block)

        rows.over_columns(use)
        return first, Spectral(second)

    def moved(self, shift: Vector, log_ratio: Spectral) -> Self:
        mean, deviation = (new_vector(self.dim, self.mean.dtype) for _ in range(2))
        smallest, largest = DEVIATIONS[deviation.dtype]

        def work(part: slice) -> None:
            np.add(self.mean[part], shift[part], out=mean[part])
            growth = deviation[part]
            np.multiply(log_ratio.values[part], 0.5, out=growth)
            np.exp(growth, out=growth)
            growth *= self.deviation[part]
            np.clip(growth, smallest, largest, out=growth)

        with np.errstate(over="ignore"):
            for_each_span(work, self.dim)
        return self.from_deviation(mean, deviation)

    def kl_of_move(self, shift: Vector, log_ratio: Spectral) -> float:
        sums = np.empty(tile_count(self.dim))

        def work(tile: int, part: slice) -> None:
            whitened, logs = shift[part] / self.deviation[part], log_ratio.values[part]
            sums[tile] = inner(whitened, whitened) + float((np.expm1(logs) - logs).sum())

        with np.errstate(over="ignore"):  # infinite is a true answer
            for_each_tile(work, self.dim)
        return 0.5 * float(sums.sum())

    def natural_gradient(self, gradient: Gradient) -> Gradient:
        mean, covariance = self._checked(gradient)
        return Gradient(self.variance * mean, 2.0 * self.variance**2 * covariance)

    def kl(self, other: Self) -> float:
        self._check_same_kind(other)
        difference = (self.mean - other.mean) / other.deviation
        logs = 2.0 * np.log(self.deviation / other.deviation)
        return 0.5 * float(difference @ difference + (np.expm1(logs) - logs).sum())

    def log_determinant(self) -> float:
        return 2.0 * float(np.log(self.deviation).sum())

    def standard_deviations(self) -> Vector:
        return self.deviation

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
        return {"mean": self.mean, "deviation": self.deviation}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        mean, deviation = state["mean"], state["deviation"]
        check_vector("mean", mean)
        check_vector("deviation", deviation, mean.size, positive=True)
        return cls.from_deviation(mean, deviation)

    def _checked(self, gradient: Gradient) -> tuple[Vector, Vector]:
        mean = check_vector("gradient.mean", gradient.mean, self.dim)
        return mean, check_vector("gradient.covariance", gradient.covariance, self.dim)


def _encoding(name: str) -> Encoding:
    return DIAGONAL[check_one_of("encoding", name, ENCODINGS)]
