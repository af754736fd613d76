"""Symmetric matrices in the frame of a Gaussian: covariance gradients and covariance changes.

An iteration only acts on their eigenvalues, so all Gaussians share one implementation of it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cones.kernels.spans import elementwise, inner
from cones.types import Matrix, Vector

__all__ = ["DiagonalMatrix", "FrameMatrix", "SpectralMatrix"]

Function = Callable[[Vector], Vector]


class FrameMatrix(ABC):
    """A symmetric n x n matrix.

    Attributes:
        values: its eigenvalues; for a `SpectralMatrix`, those of the basis.
        keeps_axes: True if `values` belong to the same axes in every iteration, so that an optimizer can average them.
    """

    __slots__ = ()
    keeps_axes: ClassVar[bool]
    values: Vector

    @abstractmethod
    def map(self, function: Function) -> FrameMatrix:
        """The matrix with `function` applied elementwise to its eigenvalues."""

    @abstractmethod
    def spectrum(self) -> Vector:
        """All n eigenvalues."""

    @abstractmethod
    def with_spectrum(self, eigenvalues: Vector) -> FrameMatrix:
        """The matrix with the same axes and these eigenvalues, in the order of `spectrum()`."""

    @abstractmethod
    def trace(self) -> float: ...

    @abstractmethod
    def norm(self) -> float:
        """The Frobenius norm."""

    @abstractmethod
    def entries(self) -> Vector | Matrix:
        """Coordinates of the matrix, the same in every iteration, with the matrix's Frobenius norm."""

    @abstractmethod
    def plus_outer(self, vector: Vector, weight: float) -> FrameMatrix:
        """The matrix plus weight v v^T, projected onto the same family."""

    @abstractmethod
    def coordinates(self, vector: Vector) -> Vector:
        """Components of a vector along the axes of `spectrum()`, those of equal eigenvalues beyond the basis as one."""

    @abstractmethod
    def combined(self, coordinates: Vector, vector: Vector) -> Vector:
        """The vector with these coordinates; beyond the basis it is parallel to `vector`."""

    @abstractmethod
    def times(self, vector: Vector) -> Vector:
        """matrix @ vector."""

    @abstractmethod
    def dense(self) -> Matrix: ...


@dataclass(slots=True, eq=False)
class DiagonalMatrix(FrameMatrix):
    """diag(values), for `DiagonalGaussian`."""

    values: Vector
    keeps_axes: ClassVar[bool] = True

    def map(self, function: Function) -> DiagonalMatrix:
        return DiagonalMatrix(elementwise(function, self.values))

    def spectrum(self) -> Vector:
        return self.values

    def with_spectrum(self, eigenvalues: Vector) -> DiagonalMatrix:
        return DiagonalMatrix(eigenvalues)

    def trace(self) -> float:
        return float(np.add.reduce(self.values, dtype=np.float64))

    def norm(self) -> float:
        return math.sqrt(inner(self.values, self.values))

    def entries(self) -> Vector:
        return self.values

    def plus_outer(self, vector: Vector, weight: float) -> DiagonalMatrix:
        return DiagonalMatrix(elementwise(lambda values, v: values + weight * v * v, self.values, vector))

    def coordinates(self, vector: Vector) -> Vector:
        return vector

    def combined(self, coordinates: Vector, vector: Vector) -> Vector:
        return coordinates

    def times(self, vector: Vector) -> Vector:
        return np.asarray(elementwise(np.multiply, self.values, vector))

    def dense(self) -> Matrix:
        return np.diag(self.values)


@dataclass(slots=True, eq=False)
class SpectralMatrix(FrameMatrix):
    """V diag(values) V^T + rest (I - V V^T), with orthonormal columns V = `basis`; for `FullGaussian`.

    The number of columns is the rank of the estimate: N samples in n dimensions take n N numbers and not n^2.
    """

    values: Vector
    basis: Matrix
    rest: float = 0.0
    keeps_axes: ClassVar[bool] = False

    def map(self, function: Function) -> SpectralMatrix:
        if not self._left():
            return SpectralMatrix(function(self.values), self.basis)
        eigenvalues = function(np.append(self.values, self.rest))
        return SpectralMatrix(eigenvalues[:-1], self.basis, float(eigenvalues[-1]))

    def spectrum(self) -> Vector:
        """The eigenvalues of the basis, then `rest` once per remaining dimension."""
        left = self._left()
        return np.concatenate([self.values, np.full(left, self.rest)]) if left else self.values

    def with_spectrum(self, eigenvalues: Vector) -> SpectralMatrix:
        rank = self.values.size
        if rank == eigenvalues.size:
            return SpectralMatrix(eigenvalues, self.basis)
        return SpectralMatrix(eigenvalues[:rank], self.basis, float(eigenvalues[rank]))

    def trace(self) -> float:
        return float(np.add.reduce(self.values, dtype=np.float64)) + self._left() * self.rest

    def norm(self) -> float:
        return math.sqrt(inner(self.values, self.values) + self._left() * (self.rest * self.rest))

    def entries(self) -> Matrix:
        return self.dense()

    def plus_outer(self, vector: Vector, weight: float) -> SpectralMatrix:
        """In O(n rank) and a small eigenproblem: the basis grows by the part of the vector outside of it."""
        inside = vector @ self.basis
        outside = vector - self.basis @ inside
        outside -= self.basis @ (outside @ self.basis)  # once more, against rounding errors
        length = math.sqrt(inner(outside, outside))
        core, basis = np.diag(self.values), self.basis
        if self._left() and length > 1e-12 * math.sqrt(inner(vector, vector)):
            basis = np.column_stack([basis, outside / length])
            inside = np.append(inside, length)
            core = np.diag(np.append(self.values, self.rest))
        values, vectors = np.linalg.eigh(core + weight * np.outer(inside, inside))
        return SpectralMatrix(values, basis @ vectors, self.rest)

    def coordinates(self, vector: Vector) -> Vector:
        return with_outside(vector @ self.basis, vector)

    def combined(self, coordinates: Vector, vector: Vector) -> Vector:
        rank = self.values.size
        if rank == coordinates.size:
            return np.asarray(self.basis @ coordinates)
        outside = vector - self.basis @ (vector @ self.basis)
        length = math.sqrt(inner(outside, outside))
        return np.asarray(self.basis @ coordinates[:rank] + outside * (coordinates[rank] / length if length else 0.0))

    def times(self, vector: Vector) -> Vector:
        product = self.basis @ ((self.values - self.rest) * (vector @ self.basis))
        return np.asarray(product + self.rest * vector if self.rest != 0.0 else product)

    def _left(self) -> int:
        """Number of dimensions that the basis does not span."""
        return int(self.basis.shape[0] - self.basis.shape[1])

    def dense(self) -> Matrix:
        product = (self.basis * (self.values - self.rest)) @ self.basis.T
        if self.rest != 0.0:
            product[np.diag_indices_from(product)] += self.rest
        return np.asarray(product)

    def project(self, vectors: Matrix) -> Matrix:
        """V^T vectors."""
        return np.asarray(self.basis.T @ vectors)

    def combination(self, coefficients: Matrix) -> Matrix:
        """V coefficients."""
        return np.asarray(self.basis @ coefficients)

    def right_multiply(self, matrix: Matrix) -> Matrix:
        """matrix @ self, in O(n^2 rank)."""
        product = (matrix @ (self.basis * (self.values - self.rest))) @ self.basis.T
        if self.rest == 1.0:  # common: utilities that sum to zero leave the complement unchanged
            product += matrix
        elif self.rest != 0.0:
            product += self.rest * matrix
        return product


def with_outside(inside: Vector, vector: Vector) -> Vector:
    """Coordinates of a vector: `inside` a basis, then the length of what is outside of it, then zeros."""
    if inside.size == vector.size:
        return inside
    coordinates = np.zeros(vector.size)
    coordinates[: inside.size] = inside
    coordinates[inside.size] = math.sqrt(max(inner(vector, vector) - inner(inside, inside), 0.0))
    return coordinates
