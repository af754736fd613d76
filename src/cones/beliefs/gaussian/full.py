"""The Gaussian with a full covariance: O(n^2) memory, low-rank updates in O(n^2 N)."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from cones.beliefs.gaussian.gaussian import FrameGradient, Gaussian, Gradient, NoiseRows
from cones.beliefs.gaussian.matrices import SpectralMatrix
from cones.beliefs.step import Step
from cones.checks import check_array, check_matrix, check_shape, check_vector
from cones.errors import InputError
from cones.types import Matrix, Vector

__all__ = ["FullGaussian"]

# One step changes the log-eigenvalues by at most these, so that exp stays in range and low-rank updates keep precision.
LARGEST_LOG, LARGEST_LOW_RANK_LOG = 680.0, 30.0
# The covariance is as good as singular if a coordinate has this many times its variance given the others.
LARGEST_INFLATION = 1e13
# The squared mean over a variance from which on an axis may be lost.
NEAR_ROUNDING = 1e24
# An axis is lost if this share of its deviation does not change the mean.
NO_EFFECT = 0.2


class FullGaussian(Gaussian):
    """N(mean, covariance).

    The covariance is stored as a square factor L, covariance = L L^T, together with W = L^-T. A change exp(S) of the
    covariance in the frame turns them into L exp(S / 2) and W exp(-S / 2). If S has rank k < n (up to a multiple of I),
    these are two products with n x k matrices. An iteration with fewer rows of noise than dimensions therefore
    factorises no n x n matrix.

    Args:
        mean: shape (n,).
        covariance: shape (n, n), symmetric and positive definite.

    Example:
        >>> belief = FullGaussian([0.0, 0.0], [[2.0, 1.0], [1.0, 2.0]])
        >>> round(belief.entropy(), 6)
        3.387183
    """

    name = "full"

    def __init__(self, mean: ArrayLike, covariance: ArrayLike) -> None:
        self.mean: Vector = check_vector("mean", mean).copy()
        matrix = check_matrix("covariance", covariance, self.dim)
        try:
            self.factor: Matrix = np.asarray(np.linalg.cholesky(matrix), np.float64)
        except np.linalg.LinAlgError:
            least = float(np.linalg.eigvalsh(matrix)[0])
            raise InputError(
                f"covariance: expected a positive definite matrix, got one with an eigenvalue of {least:.3g}"
            ) from None
        self._inverse_transpose: Matrix = solve_triangular(self.factor, np.eye(self.dim), lower=True).T
        self._freeze()

    @classmethod
    def start(cls, mean: Vector, deviation: Vector) -> Self:
        return cls(mean, np.diag(deviation**2))

    @classmethod
    def _trusted(cls, mean: Vector, factor: Matrix, inverse_transpose: Matrix) -> Self:
        """A belief from arrays that the library computed; unchecked."""
        self = cls.__new__(cls)
        self.mean, self.factor, self._inverse_transpose = mean, factor, inverse_transpose
        self._freeze()
        return self

    def _freeze(self) -> None:
        for array in (self.mean, self.factor, self._inverse_transpose):
            array.flags.writeable = False

    def __repr__(self) -> str:
        return f"FullGaussian(dim={self.dim}, spread={self.spread():.3g})"

    @property
    def covariance_freedom(self) -> int:
        return self.dim * (self.dim + 1) // 2

    @property
    def covariance(self) -> Matrix:
        return np.asarray(self.factor @ self.factor.T)

    @property
    def precision(self) -> Matrix:
        return np.asarray(self._inverse_transpose @ self._inverse_transpose.T)

    def draw(self, noise: Matrix, out: Matrix, columns: slice = slice(None)) -> None:
        displacement = noise @ self.factor.T
        np.add(self.mean, displacement, out=out[:, 0])
        if out.shape[1] == 2:
            np.subtract(self.mean, displacement, out=out[:, 1])

    def to_frame(self, shift: Vector) -> Vector:
        return np.asarray(shift @ self._inverse_transpose)

    def from_frame(self, shift: Vector) -> Vector:
        return np.asarray(self.factor @ shift)

    def gradient_from_frame(self, gradient: Vector) -> Vector:
        return np.asarray(self._inverse_transpose @ gradient)

    def whiten(self, gradient: Gradient) -> FrameGradient:
        mean, covariance = self._checked(gradient)
        inner = self.factor.T @ covariance @ self.factor
        values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
        return FrameGradient(mean @ self.factor, SpectralMatrix(values, vectors))

    def moments(self, rows: NoiseRows, odd: Vector, even: Vector) -> tuple[Vector, SpectralMatrix]:
        noise = rows.matrix()
        return odd @ noise, self._second_moment(noise, even)

    def _second_moment(self, noise: Matrix, weights: Vector) -> SpectralMatrix:
        if len(noise) >= self.dim:
            values, vectors = np.linalg.eigh((noise.T * weights) @ noise)
            return SpectralMatrix(values, vectors)
        # Z^T diag(w) Z = Q (R diag(w) R^T) Q^T with Z^T = Q R, so the eigenproblem is that of a small matrix.
        triangle = _cholesky_of(noise @ noise.T) if 4 * len(noise) <= self.dim else None
        if triangle is not None:
            values, vectors = np.linalg.eigh((triangle * weights) @ triangle.T)
            return SpectralMatrix(values, noise.T @ np.linalg.solve(triangle, vectors))
        basis, triangle = np.linalg.qr(noise.T)
        values, vectors = np.linalg.eigh((triangle * weights) @ triangle.T)
        return SpectralMatrix(values, basis @ vectors)

    def moved(self, step: Step[Any]) -> Self:
        return self._moved(step.shift, *self._within_range(step.log_ratio))

    def move(self, step: Step[Any]) -> tuple[Self, float]:
        shift = self.to_frame(step.shift)
        log_ratio, largest = self._within_range(step.log_ratio)
        logs = log_ratio.spectrum()
        kl = 0.5 * (float(shift @ shift) + float(np.add.reduce(np.expm1(logs) - logs)))
        return self._moved(step.shift, log_ratio, largest), kl

    def _within_range(self, log_ratio: SpectralMatrix) -> tuple[SpectralMatrix, float]:
        """The change, clipped to a safe range, and its largest absolute value."""
        # M + M V (exp(S/2) - 1) V^T cancels for eigenvalues that shrink too much at once.
        largest = LARGEST_LOG if log_ratio.basis.shape[1] == self.dim else LARGEST_LOW_RANK_LOG
        size = max(float(np.abs(log_ratio.values).max()), abs(log_ratio.rest))
        if size <= largest:
            return log_ratio, size
        return log_ratio.map(lambda values: np.clip(values, -largest, largest)), largest

    def _moved(self, shift: Vector, logs: SpectralMatrix, largest: float) -> Self:
        basis, factor, inverse = logs.basis, self.factor, self._inverse_transpose
        if basis.shape[0] == basis.shape[1]:
            growth = np.exp(0.5 * logs.values)
            factor, inverse = (factor @ basis) * growth, (inverse @ basis) / growth
            # Rotating back by Q^T keeps the axes of the frame, so that directions of different iterations compare.
            # After a huge change it would lose precision; L Q exp(S/2) is also a factor, and exact.
            if largest <= LARGEST_LOW_RANK_LOG:
                factor, inverse = factor @ basis.T, inverse @ basis.T
            return self._trusted(self.mean + shift, factor, inverse)
        factor = logs.map(lambda values: np.exp(0.5 * values)).right_multiply(factor)
        inverse = logs.map(lambda values: np.exp(-0.5 * values)).right_multiply(inverse)
        return self._trusted(self.mean + shift, factor, _synchronised(factor, inverse))

    def is_resolved(self) -> bool:
        inverse = self._inverse_transpose
        # Sums bound what is looked for below, and are faster.
        precision, variance = float(np.vdot(inverse, inverse)), float(np.vdot(self.factor, self.factor))
        if variance * precision <= LARGEST_INFLATION and precision * float(self.mean @ self.mean) < NEAR_ROUNDING:
            return True
        precisions = np.einsum("ij,ij->i", inverse, inverse)
        variances = np.einsum("ij,ij->i", self.factor, self.factor)
        if float((variances * precisions).max()) > LARGEST_INFLATION:
            return False
        narrow = int(precisions.argmax())
        # Far from the resolution of floats, or (NaN) beyond their range, which others look after.
        if not precisions[narrow] * float(self.mean @ self.mean) >= NEAR_ROUNDING:
            return True
        axis = inverse @ (inverse[narrow] / math.sqrt(precisions[narrow]))  # close to the narrowest axis
        axis /= math.sqrt(float(axis @ axis))
        in_frame = axis @ inverse
        reach = NO_EFFECT / math.sqrt(float(in_frame @ in_frame))
        return bool((self.mean + reach * axis != self.mean).any())

    def restarted(self, mean: Vector, factor: float) -> Self:
        return self._trusted(mean.copy(), factor * self.factor, self._inverse_transpose / factor)

    def scaled(self, factors: Vector) -> Self:
        columns = factors[:, None]
        return self._trusted(self.mean, self.factor * columns, self._inverse_transpose / columns)

    def natural_gradient(self, gradient: Gradient) -> Gradient:
        mean, matrix = self._checked(gradient)
        covariance = self.covariance
        return Gradient(covariance @ mean, 2.0 * covariance @ matrix @ covariance)

    def kl(self, other: Self) -> float:
        self._check_same_kind(other)
        difference = other.to_frame(self.mean - other.mean)
        logs = 2.0 * np.log(np.linalg.svd(other._inverse_transpose.T @ self.factor, compute_uv=False))
        return 0.5 * float(difference @ difference + (np.expm1(logs) - logs).sum())

    def log_determinant(self) -> float:
        return 2.0 * float(np.linalg.slogdet(self.factor).logabsdet)

    def standard_deviations(self) -> Vector:
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", self.factor, self.factor)))

    def spread(self) -> float:
        return math.sqrt(float(np.vdot(self.factor, self.factor)) / self.dim)

    def state(self) -> dict[str, Any]:
        return {"mean": self.mean, "factor": self.factor, "inverse_transpose": self._inverse_transpose}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        mean = check_vector("mean", state["mean"])
        for name in ("factor", "inverse_transpose"):
            check_shape(name, check_array(name, state[name]), (mean.size, mean.size))
        return cls._trusted(mean, state["factor"], state["inverse_transpose"])

    def frame_of(self, other: Self) -> tuple[Matrix, Vector]:
        """T and t with z' = T z + t: a point z in the frame of `other`, expressed in the frame of this belief."""
        inverse = self._inverse_transpose.T
        return np.asarray(inverse @ other.factor), np.asarray(inverse @ (other.mean - self.mean))

    def _rows_to_frame(self, shifts: Matrix) -> Matrix:
        return np.asarray(shifts @ self._inverse_transpose)

    def _checked(self, gradient: Gradient) -> tuple[Vector, Matrix]:
        mean = check_vector("gradient.mean", gradient.mean, self.dim)
        return mean, check_matrix("gradient.covariance", gradient.covariance, self.dim)


def _cholesky_of(gram: Matrix) -> Matrix | None:
    """R with Z^T = Q R, from Z Z^T; None if the rows of Z are far from orthogonal.

    Few rows of isotropic noise are nearly orthogonal (condition number below 9 with overwhelming probability), so
    Cholesky QR is as accurate as Householder QR, and faster. Noise that a plan has transformed need not be.
    """
    try:
        triangle = np.asarray(np.linalg.cholesky(gram).T, np.float64)
    except np.linalg.LinAlgError:
        return None
    diagonal = np.diagonal(triangle)
    return triangle if 4.0 * diagonal.min() > diagonal.max() else None


def _synchronised(factor: Matrix, inverse_transpose: Matrix) -> Matrix:
    """The inverse, recomputed if rounding errors of many updates have made it drift from the factor."""
    probe = np.full(len(factor), 1.0 / math.sqrt(len(factor)))
    drift = float(np.linalg.norm(inverse_transpose.T @ (factor @ probe) - probe))
    if drift < 1e-8 or not math.isfinite(drift):
        return inverse_transpose
    try:
        return np.asarray(np.linalg.inv(factor).T, np.float64)
    except np.linalg.LinAlgError:
        return inverse_transpose
