"""The Gaussian with a full covariance: O(n^2) memory, low-rank updates in O(n^2 N)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from cones.beliefs.belief import Belief, FrameGradient, Gradient
from cones.beliefs.gaussian.encodings import ENCODINGS, FULL, Encoding
from cones.beliefs.gaussian.spectral import Spectral
from cones.checks import check_array, check_finite, check_matrix, check_one_of, check_shape, check_vector
from cones.errors import InputError
from cones.types import Matrix, Vector

if TYPE_CHECKING:
    from cones.sampling.block import Rows

__all__ = ["FullGaussian"]

# Changes of the log-eigenvalues in one move beyond these are cut.
LARGEST_LOG, LARGEST_LOW_RANK_LOG = 680.0, 30.0


class FullGaussian(Belief):
    """N(mean, covariance).

    The covariance is held as a square factor L with covariance = L L^T, together with W = L^-T. A
    change exp(S) of the covariance in the frame turns them into L exp(S / 2) and W exp(-S / 2): for S
    of rank k < n (up to a multiple of I) that is two products with n x k matrices, so that an iteration
    with fewer rows of noise than dimensions needs no factorisation of an n x n matrix.

    Args:
        mean: shape (n,).
        covariance: shape (n, n), symmetric and positive definite.

    Example:
        >>> belief = FullGaussian([0.0, 0.0], [[2.0, 1.0], [1.0, 2.0]])
        >>> round(belief.entropy(), 6)
        3.387183
    """

    separable = False

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
    def _trusted(cls, mean: Vector, factor: Matrix, inverse_transpose: Matrix) -> Self:
        """Without the checks, for beliefs that the library has computed itself."""
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

    def displacements(self, noise: Matrix, out: Matrix | None = None, columns: slice | None = None) -> Matrix:
        return np.matmul(noise, self.factor.T, out=out)

    def to_frame(self, shift: Vector) -> Vector:
        return np.asarray(shift @ self._inverse_transpose)

    def from_frame(self, shift: Vector, out: Vector | None = None) -> Vector:
        return np.matmul(self.factor, shift, out=None if out is shift else out)

    def gradient_from_frame(self, gradient: Vector) -> Vector:
        return np.asarray(self._inverse_transpose @ gradient)

    def whiten(self, gradient: Gradient) -> FrameGradient:
        mean, covariance = self._checked(gradient)
        inner = self.factor.T @ covariance @ self.factor
        values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
        return FrameGradient(mean @ self.factor, Spectral(values, vectors))

    def moments(self, rows: Rows, odd: Vector, even: Vector) -> tuple[Vector, Spectral]:
        noise = rows.matrix()
        return odd @ noise, self._second_moment(noise, even)

    def _second_moment(self, noise: Matrix, weights: Vector) -> Spectral:
        if len(noise) >= self.dim:
            values, vectors = np.linalg.eigh((noise.T * weights) @ noise)
            return Spectral(values, vectors)
        # Z^T diag(w) Z = Q (R diag(w) R^T) Q^T with Z^T = Q R: the spectrum of a small matrix.
        if 4 * len(noise) <= self.dim:
            # Few rows of noise are nearly orthogonal (condition number below 9 with overwhelming
            # probability), so that Q R by the Cholesky factor of Z Z^T is as good as by Householder, and faster.
            triangle = np.linalg.cholesky(noise @ noise.T).T
            values, vectors = np.linalg.eigh((triangle * weights) @ triangle.T)
            return Spectral(values, noise.T @ np.linalg.solve(triangle, vectors))
        basis, triangle = np.linalg.qr(noise.T)
        values, vectors = np.linalg.eigh((triangle * weights) @ triangle.T)
        return Spectral(values, basis @ vectors)

    def moved(self, shift: Vector, log_ratio: Spectral) -> Self:
        basis, factor, inverse = log_ratio.basis, self.factor, self._inverse_transpose
        if basis is not None and basis.shape[0] == basis.shape[1]:
            growth = np.exp(0.5 * np.clip(log_ratio.values, -LARGEST_LOG, LARGEST_LOG))
            factor, inverse = (factor @ basis) * growth, (inverse @ basis) / growth
            # The frame keeps its axes, so that directions of different iterations can be compared; after a change of
            # any size it need not, as L Q exp(S/2) is as good a factor as L Q exp(S/2) Q^T, and exact.
            if np.abs(log_ratio.values).max() <= LARGEST_LOW_RANK_LOG:
                factor, inverse = factor @ basis.T, inverse @ basis.T
            return self._trusted(self.mean + shift, factor, inverse)
        # M + M V (exp(S/2) - 1) V^T loses the digits of eigenvalues that shrink too much at once.
        logs = log_ratio.map(lambda values: np.clip(values, -LARGEST_LOW_RANK_LOG, LARGEST_LOW_RANK_LOG))
        factor = logs.map(lambda values: np.exp(0.5 * values)).right_multiply(factor)
        inverse = logs.map(lambda values: np.exp(-0.5 * values)).right_multiply(inverse)
        return self._trusted(self.mean + shift, factor, _synchronised(factor, inverse))

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
        return float(np.linalg.norm(self.factor)) / math.sqrt(self.dim)

    def encode(self, encoding: str) -> Vector:
        return _encoding(encoding).encode(self.covariance)

    @classmethod
    def decode(cls, mean: ArrayLike, parameters: ArrayLike, encoding: str) -> Self:
        size = check_vector("mean", mean).size
        matrix = check_array("parameters", parameters)
        check_shape("parameters", matrix, (size, size))
        check_finite("parameters", matrix)
        try:
            return cls(mean, _encoding(encoding).decode(matrix))
        except np.linalg.LinAlgError as error:
            raise InputError(
                f"parameters: expected those of a {encoding}, got a matrix that is none ({error})"
            ) from None

    def gradient_to_encoding(self, gradient: Gradient, encoding: str) -> Gradient:
        mean, covariance = self._checked(gradient)
        return Gradient(mean, _encoding(encoding).push(self.covariance, covariance))

    def gradient_from_encoding(self, gradient: Gradient, encoding: str) -> Gradient:
        mean = check_vector("gradient.mean", gradient.mean, self.dim)
        parameters = check_array("gradient.covariance", gradient.covariance)  # triangular for cholesky
        check_shape("gradient.covariance", parameters, (self.dim, self.dim))
        check_finite("gradient.covariance", parameters)
        return Gradient(mean, _encoding(encoding).pull(self.covariance, parameters))

    def state(self) -> dict[str, Any]:
        return {"mean": self.mean, "factor": self.factor, "inverse_transpose": self._inverse_transpose}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        mean = check_vector("mean", state["mean"])
        for name in ("factor", "inverse_transpose"):
            check_shape(name, check_array(name, state[name]), (mean.size, mean.size))
        return cls._trusted(mean, state["factor"], state["inverse_transpose"])

    def _checked(self, gradient: Gradient) -> tuple[Vector, Matrix]:
        mean = check_vector("gradient.mean", gradient.mean, self.dim)
        return mean, check_matrix("gradient.covariance", gradient.covariance, self.dim)


def _synchronised(factor: Matrix, inverse_transpose: Matrix) -> Matrix:
    """The inverse, computed anew when rounding over many updates has led it away from the factor."""
    probe = np.full(len(factor), 1.0 / math.sqrt(len(factor)))
    drift = float(np.linalg.norm(inverse_transpose.T @ (factor @ probe) - probe))
    if drift < 1e-8 or not math.isfinite(drift):
        return inverse_transpose
    try:
        return np.asarray(np.linalg.inv(factor).T, np.float64)
    except np.linalg.LinAlgError:
        return inverse_transpose


def _encoding(name: str) -> Encoding:
    return FULL[check_one_of("encoding", name, ENCODINGS)]
