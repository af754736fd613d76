r"""Symmetric matrices spanned by a few vectors and rows of noise, without an n x n or an n x N array.

Let F = [V, p, ..., Z^T] have the given vectors and the rows of noise Z as columns, and G = F^T F. A matrix of the form
F C F^T has the eigenvectors F X, where X comes from two small eigenproblems:

    G = E h E^T,    T = E h^-1/2,    T^T G C G T = W v W^T,    X = T W

Noise is read once for G, once for each further vector, and once for a product F Y. It may be redrawn each time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cones.beliefs.gaussian.gaussian import NoiseRows
from cones.beliefs.gaussian.matrices import FrameMatrix, Function, with_outside
from cones.kernels.buffers import new_vector
from cones.kernels.spans import inner
from cones.types import Matrix, Vector

__all__ = ["Span", "SpannedMatrix", "orthonormal"]

# Directions with a smaller share of the largest squared length are linear combinations of the others, up to rounding.
NEGLIGIBLE = {np.dtype("float64"): 1e-9, np.dtype("float32"): 1e-5}
# The least sine of an angle between a column and those before it that Cholesky's factor is good for.
WELL_CONDITIONED = 0.1


@dataclass(frozen=True, eq=False)
class Span:
    """The columns of F = [vectors..., Z^T], and their products G = F^T F."""

    vectors: tuple[Matrix, ...]  # each of shape (n, j)
    rows: NoiseRows
    gram: Matrix

    @property
    def dim(self) -> int:
        return int(self.vectors[0].shape[0])

    @classmethod
    def of(cls, vectors: Matrix, rows: NoiseRows, odd: Vector) -> tuple[Span, Vector]:
        """The span of the columns of `vectors` and the rows of noise, and sum_i odd_i z_i, in one pass."""
        total: Vector = new_vector(vectors.shape[0], vectors.dtype)
        odd, k = odd.astype(vectors.dtype), vectors.shape[1]
        gram = np.zeros((k + odd.size, k + odd.size))
        gram[:k, :k] = vectors.T @ vectors

        def use(columns: slice, normals: Matrix) -> None:
            np.matmul(odd, normals, out=total[columns])
            gram[k:, k:] += normals @ normals.T
            gram[k:, :k] += normals @ vectors[columns]

        rows.over_spans(use)
        gram[:k, k:] = gram[k:, :k].T
        return cls((vectors,), rows, gram), total

    def products(self, vector: Vector) -> Vector:
        """F^T vector."""
        first = np.concatenate([part.T @ vector for part in self.vectors])
        found = np.concatenate([first, np.zeros(len(self.gram) - first.size)])

        def use(columns: slice, normals: Matrix) -> None:
            found[first.size :] += normals @ vector[columns]

        self.rows.over_spans(use)
        return found

    def combination(self, coefficients: Matrix) -> Matrix:
        """F coefficients, shape (n, k)."""
        transposed = np.ascontiguousarray(coefficients.T, self.vectors[0].dtype)
        out, place = np.zeros((len(transposed), self.dim), self.vectors[0].dtype), 0
        for part in self.vectors:
            out += transposed[:, place : place + part.shape[1]] @ part.T
            place += part.shape[1]

        def use(columns: slice, normals: Matrix) -> None:
            out[:, columns] += transposed[:, place:] @ normals

        self.rows.over_spans(use)
        return out.T

    def with_vector(self, vector: Vector) -> Span:
        """The span of one more vector, before the noise."""
        products, place = self.products(vector), sum(part.shape[1] for part in self.vectors)
        gram = np.insert(np.insert(self.gram, place, products, axis=0), place, 0.0, axis=1)
        gram[:, place] = gram[place, :] = np.insert(products, place, inner(vector, vector))
        return Span((*self.vectors, vector[:, None]), self.rows, gram)


@dataclass(slots=True, eq=False)
class SpannedMatrix(FrameMatrix):
    """U diag(values) U^T + rest (I - U U^T) with U = F `coefficients`, orthonormal columns that span those of F."""

    values: Vector
    span: Span
    coefficients: Matrix
    rest: float = 0.0
    keeps_axes: ClassVar[bool] = False

    @classmethod
    def of(cls, span: Span, core: Matrix, rest: float = 0.0) -> SpannedMatrix:
        """F core F^T + rest I, for a symmetric core."""
        triangle = orthonormal(span.gram, span.vectors[0].dtype)
        frame = span.gram @ triangle
        values, rotation = np.linalg.eigh(frame.T @ core @ frame)
        return cls(values + rest, span, triangle @ rotation, rest)

    def plus_outer(self, vector: Vector, weight: float) -> SpannedMatrix:
        """This matrix plus weight vector vector^T."""
        span = self.span.with_vector(vector)
        place = sum(part.shape[1] for part in self.span.vectors)
        widened = np.insert(self.coefficients, place, 0.0, axis=0)
        core = (widened * (self.values - self.rest)) @ widened.T
        core[place, place] += weight
        return SpannedMatrix.of(span, core, self.rest)

    def map(self, function: Function) -> SpannedMatrix:
        eigenvalues = function(np.append(self.values, self.rest))
        return SpannedMatrix(eigenvalues[:-1], self.span, self.coefficients, float(eigenvalues[-1]))

    def spectrum(self) -> Vector:
        """The eigenvalues in the span, then `rest` once per remaining dimension."""
        return np.concatenate([self.values, np.full(self._left(), self.rest)])

    def with_spectrum(self, eigenvalues: Vector) -> SpannedMatrix:
        rank = self.values.size
        rest = float(eigenvalues[rank]) if rank < eigenvalues.size else self.rest
        return SpannedMatrix(eigenvalues[:rank], self.span, self.coefficients, rest)

    def trace(self) -> float:
        return float(self.values.sum()) + self._left() * self.rest

    def norm(self) -> float:
        return math.sqrt(inner(self.values, self.values) + self._left() * (self.rest * self.rest))

    def entries(self) -> Matrix:
        return self.dense()

    def dense(self) -> Matrix:
        basis = self.span.combination(self.coefficients)
        return np.asarray((basis * (self.values - self.rest)) @ basis.T + self.rest * np.eye(self.span.dim))

    def project(self, vectors: Matrix) -> Matrix:
        """U^T vectors. Free for the first vectors of the span."""
        if vectors is self.span.vectors[0]:
            return np.asarray(self.coefficients.T @ self.span.gram[:, : vectors.shape[1]])
        products = [self.span.products(np.ascontiguousarray(vector)) for vector in vectors.T]
        return np.asarray(self.coefficients.T @ np.column_stack(products))

    def combination(self, coefficients: Matrix) -> Matrix:
        """U coefficients."""
        return self.span.combination(self.coefficients @ coefficients)

    def coordinates(self, vector: Vector) -> Vector:
        return with_outside(self.coefficients.T @ self.span.products(vector), vector)

    def combined(self, coordinates: Vector, vector: Vector) -> Vector:
        inside, rank = self.coefficients.T @ self.span.products(vector), self.values.size
        length = with_outside(inside, vector)[rank] if rank < vector.size else 0.0
        share = coordinates[rank] / length if length else 0.0  # of the part of `vector` outside of the basis
        mixed = self.coefficients @ (coordinates[:rank] - share * inside)
        return np.asarray(self.span.combination(mixed[:, None])[:, 0] + share * vector)

    def times(self, vector: Vector) -> Vector:
        inside = self.coefficients.T @ self.span.products(vector)
        product = self.span.combination((self.coefficients @ ((self.values - self.rest) * inside))[:, None])[:, 0]
        return np.asarray(product + self.rest * vector)

    def _left(self) -> int:
        return self.span.dim - self.values.size


def orthonormal(gram: Matrix, dtype: np.dtype[np.generic]) -> Matrix:
    """T such that the columns of F T are an orthonormal basis of the span of F, from G = F^T F."""
    lengths = np.sqrt(np.diagonal(gram))
    unit = 1.0 / np.where(lengths > 0.0, lengths, 1.0)  # columns of unit length: their scales say nothing of rank
    gram, least = gram * unit * unit[:, None], NEGLIGIBLE[np.dtype(dtype)]
    try:
        triangle = np.linalg.cholesky(gram)
        if triangle.size and float(np.diagonal(triangle).min()) > WELL_CONDITIONED:  # faster, and as accurate
            return np.asarray(unit[:, None] * np.linalg.inv(triangle).T)
    except np.linalg.LinAlgError:
        pass
    squares, vectors = np.linalg.eigh(gram)
    kept = squares > least * squares.max(initial=0.0)
    return np.asarray(unit[:, None] * vectors[:, kept] / np.sqrt(squares[kept]))
