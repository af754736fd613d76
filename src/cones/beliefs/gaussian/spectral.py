"""Symmetric matrices in the frame of a belief, known by their spectrum."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cones.kernels.spans import inner
from cones.types import Matrix, Vector

__all__ = ["Spectral"]


@dataclass(frozen=True)
class Spectral:
    """V diag(values) V^T + rest (I - V V^T), with orthonormal columns V = `basis`.

    `basis=None` stands for V = I: the diagonal matrices of `DiagonalGaussian`. For `FullGaussian` the
    basis has as many columns as the estimate has rank, so that a matrix made from N samples in n
    dimensions costs n N numbers and not n^2. Every map between the stages of an iteration acts on the
    eigenvalues alone, which is what lets both beliefs share one pipeline.
    """

    values: Vector
    basis: Matrix | None = None
    rest: float = 0.0

    def map(self, function: Callable[[Vector], Vector]) -> Spectral:
        """The same matrix with `function` applied to its eigenvalues."""
        if self.basis is None:
            return Spectral(function(self.values))
        eigenvalues = function(np.append(self.values, self.rest))
        return Spectral(eigenvalues[:-1], self.basis, float(eigenvalues[-1]))

    def spectrum(self) -> Vector:
        """All n eigenvalues: those of the basis first, then `rest` once for each dimension left."""
        if self.basis is None:
            return self.values
        n, rank = self.basis.shape
        return np.concatenate([self.values, np.full(n - rank, self.rest)])

    def with_spectrum(self, eigenvalues: Vector) -> Spectral:
        """The matrix on the same basis whose `spectrum()` is `eigenvalues`."""
        if self.basis is None:
            return Spectral(eigenvalues)
        n, rank = self.basis.shape
        return Spectral(eigenvalues[:rank], self.basis, float(eigenvalues[rank]) if rank < n else 0.0)

    def trace(self) -> float:
        return float(np.sum(self.values, dtype=np.float64)) + self._left() * self.rest

    def norm(self) -> float:
        """The Frobenius norm."""
        return math.sqrt(inner(self.values, self.values) + self._left() * (self.rest * self.rest))

    def _left(self) -> int:
        """Dimensions that the basis does not span."""
        return 0 if self.basis is None else self.basis.shape[0] - self.basis.shape[1]

    def dense(self) -> Matrix:
        if self.basis is None:
            return np.diag(self.values)
        return self.right_multiply(np.eye(self.basis.shape[0]))

    def right_multiply(self, matrix: Matrix) -> Matrix:
        """matrix @ self, in O(n^2 rank)."""
        if self.basis is None:
            return matrix * self.values
        product = (matrix @ (self.basis * (self.values - self.rest))) @ self.basis.T
        if self.rest == 1.0:  # the common case: utilities that sum to zero leave the complement alone
            product += matrix
        elif self.rest != 0.0:
            product += self.rest * matrix
        return product
