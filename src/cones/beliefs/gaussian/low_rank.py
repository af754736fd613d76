r"""The Gaussian with a covariance of low rank beside a diagonal: O(n k) in time and memory.

    covariance = D A D,      A = I + V (diag(lambda) - I) V^T,      V^T V = I,  V of shape (n, k)

The frame is L = D A^1/2 with the symmetric root A^1/2 = I + V (diag(sqrt(lambda)) - I) V^T. A step S in the frame gives
A' = A^1/2 exp(S) A^1/2, an eigenproblem in span[V, S]. Of its eigenvalues, relative to the rest of the space, those
with the largest divergence lambda - 1 - log lambda are kept, at most `rank` of them; the others are averaged with the
rest, which D absorbs. Without axes (k = 0), a diagonal step moves D as in a `DiagonalGaussian`.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from cones.beliefs.gaussian.diagonal import DEVIATIONS, DiagonalGaussian
from cones.beliefs.gaussian.gaussian import FrameGradient, Gaussian, Gradient, NoiseRows
from cones.beliefs.gaussian.matrices import DiagonalMatrix, FrameMatrix, SpectralMatrix
from cones.beliefs.gaussian.spanned import Span, SpannedMatrix, orthonormal
from cones.beliefs.step import Step
from cones.checks import check_array, check_bool, check_integer, check_matrix, check_shape, check_vector
from cones.errors import InputError
from cones.kernels.spans import elementwise, inner, tile_count, tile_slice
from cones.types import Matrix, Vector

__all__ = ["LowRankGaussian", "default_rank"]

# Bounds of lambda, and of one step's change of a log-eigenvalue, so that products keep precision.
SMALLEST, LARGEST, LARGEST_LOG = 1e-12, 1e12, 27.0
# Deviations whose ratios differ by less are the same up to a factor.
SAME = {np.dtype("float64"): 1e-12, np.dtype("float32"): 1e-4}


def default_rank(dim: int) -> int:
    """Default largest rank: twice 2 + 2 log(dim), or 1.5 sqrt(dim) up to 100 if that is more; less than dim.

    Example:
        >>> [default_rank(dim) for dim in (3, 100, 1000, 100_000)]
        [2, 22, 47, 100]
    """
    return max(0, min(max(2 * int(2.0 + 2.0 * math.log(dim)), min(int(1.5 * math.sqrt(dim)), 100)), dim - 1))


class LowRankGaussian(Gaussian):
    """N(mean, D (I + V (diag(values) - I) V^T) D).

    Args:
        mean: shape (n,).
        deviation: D, shape (n,), or one number for all coordinates; positive.
        basis: V, shape (n, k), orthonormal columns; none by default.
        values: lambda, shape (k,), positive.
        rank: the largest number of columns that steps may give V. By default `default_rank(n)`.

    Attributes:
        diagonal: True if the belief learns its diagonal only: D moves, and V has no columns.

    Example:
        >>> belief = LowRankGaussian([0.0, 0.0], [1.0, 1.0], [[0.6], [0.8]], [4.0])
        >>> belief.covariance.round(2)
        array([[2.08, 1.44],
               [1.44, 2.92]])
    """

    name = "low_rank"

    def __init__(
        self,
        mean: ArrayLike,
        deviation: ArrayLike,
        basis: ArrayLike | None = None,
        values: ArrayLike = (),
        rank: int | None = None,
    ) -> None:
        center = check_vector("mean", mean).copy()
        scale = check_vector("deviation", deviation, center.size, positive=True).copy()
        axes = np.zeros((center.size, 0)) if basis is None else check_array("basis", basis).copy()
        lambdas = check_array("values", values).copy()
        self._set(center, scale, axes, lambdas, _checked_rank(rank, center.size), False)
        self._check()

    @classmethod
    def start(cls, mean: Vector, deviation: Vector) -> Self:
        return cls(mean, deviation)

    @classmethod
    def _trusted(
        cls, mean: Vector, deviation: Vector, basis: Matrix, values: Vector, rank: int, diagonal: bool
    ) -> Self:
        """A belief from arrays that the library computed; unchecked."""
        self = cls.__new__(cls)
        self._set(mean, deviation, basis, values, rank, diagonal)
        return self

    def _set(self, mean: Vector, deviation: Vector, basis: Matrix, values: Vector, rank: int, diagonal: bool) -> None:
        self.mean, self.deviation, self.basis, self.values = mean, deviation, basis, values
        self.rank, self.diagonal = rank, diagonal
        self.separable = diagonal  # type: ignore[misc]  # of this object, not of the class
        for array in (mean, deviation, basis, values):
            array.flags.writeable = False

    def _check(self) -> None:
        check_shape("basis", self.basis, (self.dim, self.values.size))
        check_shape("values", self.values, (self.values.size,))
        if not (np.isfinite(self.values).all() and (self.values > 0.0).all()):
            raise InputError(f"values: expected positive numbers, got {self.values!r:.80}")
        error = self.basis.T @ self.basis - np.eye(self.values.size)
        if not (np.abs(error) < 1e-3).all():
            raise InputError(f"basis: expected orthonormal columns, got products up to {np.abs(error).max():.3g} off")
        if self.values.size > self.rank or (self.diagonal and self.values.size):
            raise InputError(
                f"basis: expected at most {0 if self.diagonal else self.rank} columns, got {self.values.size}"
            )

    def with_rank(self, rank: int) -> Self:
        """The belief with another largest rank, at least its present one."""
        again = self._trusted(
            self.mean, self.deviation, self.basis, self.values, _checked_rank(rank, self.dim), self.diagonal
        )
        again._check()
        return again

    def as_type(self, dtype: str) -> Self:
        """The belief in another dtype."""
        mean, deviation, basis = (array.astype(dtype) for array in (self.mean, self.deviation, self.basis))
        return self._trusted(mean, deviation, basis, self.values, self.rank, self.diagonal)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._trusted, (self.mean, self.deviation, self.basis, self.values, self.rank, self.diagonal)

    def __repr__(self) -> str:
        return f"LowRankGaussian(dim={self.dim}, axes={self.values.size}, spread={self.spread():.3g})"

    @property
    def covariance_freedom(self) -> int:
        return self.dim if self.diagonal else self.dim * (self.dim + 1) // 2

    @property
    def covariance(self) -> Matrix:
        matrix = (self.basis * (self.values - 1.0)) @ self.basis.T
        matrix[np.diag_indices_from(matrix)] += 1.0
        return np.asarray(matrix * self.deviation * self.deviation[:, None])

    def draw(self, noise: Matrix, out: Matrix, columns: slice = slice(None)) -> None:
        if self.diagonal:
            DiagonalGaussian.from_deviation(self.mean, self.deviation).draw(noise, out, columns)
            return
        stretched = (noise @ self.basis) * (np.sqrt(self.values) - 1.0).astype(noise.dtype)
        for tile in range(tile_count(self.dim)):  # temporary arrays that stay in the cache
            part = tile_slice(tile, self.dim)
            displacement = stretched @ self.basis[part].T
            displacement += noise[:, part]
            displacement *= self.deviation[part]
            np.add(self.mean[part], displacement, out=out[:, 0, part])
            if out.shape[1] == 2:
                np.subtract(self.mean[part], displacement, out=out[:, 1, part])

    def _powered(self, rows: Matrix, power: float) -> Matrix:
        """A^power applied to each row."""
        if not self.values.size:
            return rows
        stretch = (self.values**power - 1.0).astype(rows.dtype)
        return np.asarray(rows + ((rows @ self.basis) * stretch) @ self.basis.T)

    def to_frame(self, shift: Vector) -> Vector:
        return self._powered(shift / self.deviation, -0.5)

    def from_frame(self, shift: Vector) -> Vector:
        return np.asarray(elementwise(np.multiply, self._powered(shift, 0.5), self.deviation))

    def gradient_from_frame(self, gradient: Vector) -> Vector:
        return np.asarray(self._powered(gradient, -0.5) / self.deviation)

    def whiten(self, gradient: Gradient) -> FrameGradient:
        mean, covariance = self._checked(gradient)
        inside = self._powered(covariance * self.deviation * self.deviation[:, None], 0.5)
        values, vectors = np.linalg.eigh(self._powered(inside.T, 0.5))
        return FrameGradient(self._powered(mean * self.deviation, 0.5), SpectralMatrix(values, vectors))

    def moments(self, rows: NoiseRows, odd: Vector, even: Vector) -> tuple[Vector, FrameMatrix]:
        if self.diagonal:
            return DiagonalGaussian.from_deviation(self.mean, self.deviation).moments(rows, odd, even)
        span, first = Span.of(self.basis, rows, odd)
        core = np.diag(np.concatenate([np.zeros(self.values.size), even]))
        return first, SpannedMatrix.of(span, core)

    def moved(self, step: Step[Any]) -> Self:
        log_ratio = step.log_ratio
        if isinstance(log_ratio, DiagonalMatrix):
            return self._moved_diagonal(step)[0]
        mean = np.asarray(elementwise(np.add, self.mean, step.shift))
        values, rest = np.clip(log_ratio.values, -LARGEST_LOG, LARGEST_LOG), _clipped(log_ratio.rest)
        if not values.any() and rest == 0.0:
            return self._trusted(mean, self.deviation, self.basis, self.values, self.rank, False)
        basis, lambdas, factor = self._reshaped(log_ratio, values, rest)
        smallest, largest = DEVIATIONS[self.deviation.dtype]
        deviation = elementwise(lambda part: np.clip(math.sqrt(factor) * part, smallest, largest), self.deviation)
        return self._trusted(mean, deviation.astype(self.deviation.dtype), basis, lambdas, self.rank, False)

    def _reshaped(
        self, change: SpannedMatrix | SpectralMatrix, logs: Vector, rest: float
    ) -> tuple[Matrix, Vector, float]:
        """V, lambda and the factor of D^2 after a change with these log-eigenvalues and axes."""
        k, n = self.values.size, self.dim
        if isinstance(change, SpannedMatrix) and change.span.vectors[0] is self.basis:
            of_basis, of_change = change.project(self.basis), np.eye(logs.size)  # V is in the span of U
            triangle = np.concatenate([np.zeros((k, logs.size)), of_change])
        else:
            products = change.project(self.basis)
            gram = np.block([[np.eye(k), products.T], [products, np.eye(logs.size)]])
            triangle = orthonormal(gram, self.basis.dtype)
            of_basis, of_change = np.split(triangle.T @ gram, [k], axis=1)  # Q^T V, Q^T U
        size = len(of_basis)
        root = np.eye(size) + (of_basis * (np.sqrt(self.values) - 1.0)) @ of_basis.T
        inside = math.exp(rest) * np.eye(size) + (of_change * (np.exp(logs) - math.exp(rest))) @ of_change.T
        values, axes = np.linalg.eigh(root @ inside @ root)
        values = np.maximum(values, SMALLEST * SMALLEST)
        kept, factor = _kept(values, math.exp(rest), n, min(self.rank, n - 1))
        coefficients = triangle @ axes[:, kept]
        basis = change.combination(coefficients[k:])
        if coefficients[:k].any():
            basis = basis + self.basis @ coefficients[:k]
        return basis.astype(self.basis.dtype, copy=False), np.clip(values[kept] / factor, SMALLEST, LARGEST), factor

    def _moved_diagonal(self, step: Step[Any]) -> tuple[Self, float]:
        if self.values.size:
            raise InputError("log_ratio: expected no diagonal matrix for a belief that has axes, got one")
        after, kl = DiagonalGaussian.from_deviation(self.mean, self.deviation).move(step)
        return self._trusted(after.mean, after.deviation, self.basis, self.values, self.rank, True), kl

    def move(self, step: Step[Any]) -> tuple[Self, float]:
        if isinstance(step.log_ratio, DiagonalMatrix):
            return self._moved_diagonal(step)
        return super().move(step)

    def scaled(self, factors: Vector) -> Self:
        deviation = (factors * self.deviation).astype(self.deviation.dtype)
        return self._trusted(self.mean, deviation, self.basis, self.values, self.rank, self.diagonal)

    def natural_gradient(self, gradient: Gradient) -> Gradient:
        mean, matrix = self._checked(gradient)
        covariance = self.covariance
        return Gradient(covariance @ mean, 2.0 * covariance @ matrix @ covariance)

    def kl(self, other: Self) -> float:
        self._check_same_kind(other)
        difference = other.to_frame(self.mean - other.mean)
        return 0.5 * (inner(difference, difference) + self._shape_divergence(other))

    def _shape_divergence(self, other: Self) -> float:
        """tr M - n - log det M, for M this covariance in the frame of the other."""
        logs = 2.0 * np.log(self.deviation / other.deviation, dtype=np.float64)
        scale = float(logs.mean())
        same = float(np.abs(logs - scale).max()) < SAME[self.deviation.dtype]
        if same and self.basis is other.basis and self.values is other.values:
            return self.dim * (math.expm1(scale) - scale)
        if not same:
            return self._unlike(other, logs)
        # M = e^scale A'^-1/2 A A'^-1/2 differs from e^scale I in span[V, V'] only.
        k, n = self.values.size, self.dim
        products = np.asarray(other.basis.T @ self.basis, np.float64)
        gram = np.block([[np.eye(k), products.T], [products, np.eye(other.values.size)]])
        frame = orthonormal(gram, self.basis.dtype).T @ gram
        mine, theirs = frame[:, :k], frame[:, k:]
        root = np.eye(len(frame)) + (theirs * (other.values**-0.5 - 1.0)) @ theirs.T
        change = (mine * (self.values - 1.0)) @ mine.T - (theirs * (other.values - 1.0)) @ theirs.T
        found = np.linalg.eigvalsh(root @ change @ root)
        excess = found * math.exp(scale) + math.expm1(scale)
        left = (n - found.size) * (math.expm1(scale) - scale)
        if float(excess.min(initial=0.0)) > -0.5:
            return float((excess - np.log1p(excess)).sum()) + left
        # Eigenvalues near 0 have lost their digits; the determinant has not.
        logs_inside = float(np.log(self.values).sum() - np.log(other.values).sum()) + found.size * scale
        return float(excess.sum()) - logs_inside + left

    def _unlike(self, other: Self, logs: Vector) -> float:
        """The same for diagonals that differ in shape."""
        ratio = np.exp(0.5 * logs)[:, None]
        mine, theirs = ratio * self.basis, ratio * other.basis
        trace = float(np.expm1(logs).sum()) + float(((self.values - 1.0) * (mine**2).sum(axis=0)).sum())
        stretched = (theirs**2).sum(axis=0) + ((other.basis.T @ mine) ** 2 * (self.values - 1.0)).sum(axis=1)
        trace += float(((1.0 / other.values - 1.0) * stretched).sum())
        return trace - float(logs.sum()) - float(np.log(self.values).sum()) + float(np.log(other.values).sum())

    def log_determinant(self) -> float:
        return 2.0 * float(np.log(self.deviation, dtype=np.float64).sum()) + float(np.log(self.values).sum())

    def standard_deviations(self) -> Vector:
        if not self.values.size:
            return self.deviation
        variance = 1.0 + (np.square(self.basis) * (self.values - 1.0)).sum(axis=1)
        return np.asarray(self.deviation * np.sqrt(variance), self.deviation.dtype)

    def state(self) -> dict[str, Any]:
        names = ("mean", "deviation", "basis", "values", "rank", "diagonal")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        mean, deviation = state["mean"], state["deviation"]
        check_vector("mean", mean)
        check_vector("deviation", deviation, mean.size, positive=True)
        for name in ("basis", "values"):
            check_array(name, state[name])
        rank, diagonal = _checked_rank(state["rank"], mean.size), check_bool("diagonal", state["diagonal"])
        self = cls._trusted(mean, deviation, state["basis"], state["values"], rank, diagonal)
        self._check()
        return self

    def _rows_to_frame(self, shifts: Matrix) -> Matrix:
        return self._powered(shifts / self.deviation, -0.5)

    def _checked(self, gradient: Gradient) -> tuple[Vector, Matrix]:
        mean = check_vector("gradient.mean", gradient.mean, self.dim)
        return mean, check_matrix("gradient.covariance", gradient.covariance, self.dim)


def _checked_rank(rank: int | None, dim: int) -> int:
    if rank is None:
        return default_rank(dim)
    if check_integer("rank", rank, 0) > dim:
        raise InputError(f"rank: expected at most {dim}, the number of dimensions, got {rank}")
    return int(rank)


def _clipped(log: float) -> float:
    return min(max(log, -LARGEST_LOG), LARGEST_LOG)


def _kept(values: Vector, rest: float, n: int, rank: int) -> tuple[Any, float]:
    """Which eigenvalues are kept, and the mean of the others and of the rest of the space."""
    factor = rest
    kept = np.arange(0)
    for _ in range(2):  # the mean depends on what is kept
        relative = values / factor
        order = np.argsort(relative - 1.0 - np.log(relative), kind="stable")
        kept, dropped = order[max(0, order.size - rank) :], order[: max(0, order.size - rank)]
        factor = (float(values[dropped].sum()) + (n - values.size) * rest) / (n - kept.size)
    return kept, factor
