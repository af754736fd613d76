"""The Gaussian with a diagonal covariance: O(n) in everything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from cones.beliefs.gaussian.gaussian import FrameGradient, Gaussian, Gradient, NoiseRows
from cones.beliefs.gaussian.matrices import DiagonalMatrix
from cones.beliefs.step import Step
from cones.checks import check_vector
from cones.kernels.buffers import aligned, new_vector
from cones.kernels.spans import elementwise, extremes, inner, tile_sums, weighted_sum
from cones.types import Matrix, Vector

__all__ = ["DiagonalGaussian"]

# Bounds of the deviations, so that their squares and reciprocals neither overflow nor underflow.
DEVIATIONS = {np.dtype("float64"): (1e-150, 1e150), np.dtype("float32"): (1e-18, 1e18)}


class DiagonalGaussian(Gaussian):
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

    name = "diagonal"
    separable = True

    def __init__(self, mean: ArrayLike, variance: ArrayLike) -> None:
        self.mean: Vector = check_vector("mean", mean).copy()
        self.deviation: Vector = np.sqrt(check_vector("variance", variance, self.dim, positive=True))
        self._freeze()

    @classmethod
    def start(cls, mean: Vector, deviation: Vector) -> Self:
        return cls(mean, deviation**2)

    @classmethod
    def from_deviation(cls, mean: Vector, deviation: Vector) -> Self:
        """N(mean, diag(deviation^2)) from arrays that the library computed; unchecked, not copied."""
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
        """The belief in another dtype."""
        return self.from_deviation(self.mean.astype(dtype), self.deviation.astype(dtype))

    def __reduce__(self) -> tuple[Any, ...]:
        return self.from_deviation, (self.mean, self.deviation)

    def __repr__(self) -> str:
        return f"DiagonalGaussian(dim={self.dim}, spread={self.spread():.3g})"

    def draw(self, noise: Matrix, out: Matrix, columns: slice = slice(None)) -> None:
        mean = self.mean[columns]
        displacement = np.multiply(noise, self.deviation[columns], out=out[:, -1])
        np.add(mean, displacement, out=out[:, 0])
        if out.shape[1] == 2:
            np.subtract(mean, displacement, out=out[:, 1])

    def to_frame(self, shift: Vector) -> Vector:
        return shift / self.deviation

    def from_frame(self, shift: Vector) -> Vector:
        return np.asarray(elementwise(np.multiply, shift, self.deviation))

    def gradient_from_frame(self, gradient: Vector) -> Vector:
        return np.asarray(elementwise(np.divide, gradient, self.deviation))

    def whiten(self, gradient: Gradient) -> FrameGradient:
        mean, covariance = self._checked(gradient)
        return FrameGradient(mean * self.deviation, DiagonalMatrix(covariance * self.variance))

    def moments(self, rows: NoiseRows, odd: Vector, even: Vector) -> tuple[Vector, DiagonalMatrix]:
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
        return first, DiagonalMatrix(second)

    def moved(self, step: Step[Any]) -> Self:
        smallest, largest = DEVIATIONS[self.deviation.dtype]

        def formula(mean: Vector, deviation: Vector, shift: Vector, log_ratio: Vector) -> tuple[Vector, Vector]:
            return mean + shift, np.clip(np.exp(0.5 * log_ratio) * deviation, smallest, largest)

        with np.errstate(over="ignore"):
            parts = elementwise(formula, self.mean, self.deviation, step.shift, step.log_ratio.values)
        return self.from_deviation(*parts)

    def move(self, step: Step[Any]) -> tuple[Self, float]:
        after = self.moved(step)
        smallest, largest = DEVIATIONS[self.deviation.dtype]
        low, high = extremes(after.deviation)
        if low <= smallest or high >= largest:  # the step was clipped: its own formula does not hold
            return after, after.kl(self)

        def formula(deviation: Vector, shift: Vector, logs: Vector) -> float:
            whitened = shift / deviation
            return inner(whitened, whitened) + float((np.expm1(logs) - logs).sum())

        with np.errstate(over="ignore"):  # an infinite KL is correct here
            return after, 0.5 * float(tile_sums(formula, self.deviation, step.shift, step.log_ratio.values))

    def restarted(self, mean: Vector, factor: float) -> Self:
        return self.from_deviation(mean.copy(), self.deviation.dtype.type(factor) * self.deviation)  # keeps the dtype

    def scaled(self, factors: Vector) -> Self:
        return self.from_deviation(self.mean, (factors * self.deviation).astype(self.deviation.dtype))

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

    def state(self) -> dict[str, Any]:
        return {"mean": self.mean, "deviation": self.deviation}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        mean, deviation = state["mean"], state["deviation"]
        check_vector("mean", mean)
        check_vector("deviation", deviation, mean.size, positive=True)
        return cls.from_deviation(mean, deviation)

    def _rows_to_frame(self, shifts: Matrix) -> Matrix:
        return shifts / self.deviation

    def _checked(self, gradient: Gradient) -> tuple[Vector, Vector]:
        mean = check_vector("gradient.mean", gradient.mean, self.dim)
        return mean, check_vector("gradient.covariance", gradient.covariance, self.dim)
