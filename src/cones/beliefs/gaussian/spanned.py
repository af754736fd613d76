r"""Symmetric matrices spanned by a few vectors and rows of noise, without an n x n or an n x N array.

Let F = [V, p, ..., Z^T] have the given vectors and the rows of noise Z as columns, and G = F^T F. A matrix of the form
F C F^T has the eigenvectors F X, where X comes from two small eigenproblems:

    G = E h E^T,    T = E h^-1/2,    T^T G C G T = W v W^T,    X = T W

Noise is read twice per iteration, once for G and once for a product F Y. It may be redrawn each time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cones.beliefs.gaussian.gaussian import NoiseRows
from cones.beliefs.gaussian.matrices import FrameMatrix, Function
from cones.kernels.buffers import aligned, new_vector
from cones.kernels.spans import TILE, inner
from cones.types import Matrix, Vector

__all__ = ["Span", "SpannedMatrix", "orthonormal"]

# Directions with a smaller share of the largest squared length are linear combinations of the others, up to rounding.
NEGLIGIBLE = {np.dtype("float64"): 1e-9, np.dtype("float32"): 1e-5}


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
        count = vectors.shape[1] + odd.size
        total: Vector = new_vector(vectors.shape[0], vectors.dtype)
        odd = odd.astype(vectors.dtype)
        found: dict[int, Matrix] = {}

        def use(columns: slice, tile: Matrix) -> None:
            np.matmul(odd, tile[vectors.shape[1] :], out=total[columns])
            found[columns.start] = np.asarray(tile @ tile.T, np.float64)

        _over_tiles((vectors,), rows, count, use)
        return cls((vectors,), rows, _sum(found)), total

    def products(self, vector: Vector) -> Vector:
        """F^T vector."""
        found: dict[int, Vector] = {}

        def use(columns: slice, tile: Matrix) -> None:
            found[columns.start] = np.asarray(tile @ vector[columns], np.float64)

        _over_tiles(self.vectors, self.rows, len(self.gram), use)
        return _sum(found)

    def combination(self, coefficients: Matrix) -> Matrix:
        """F coefficients, shape (n, k)."""
        transposed = np.ascontiguousarray(coefficients.T, self.vectors[0].dtype)
        out = np.empty((len(transposed), self.dim), self.vectors[0].dtype)

        def use(columns: slice, tile: Matrix) -> None:
            out[:, columns] = transposed @ tile

        _over_tiles(self.vectors, self.rows, len(self.gram), use)
        return out.T

    def with_vector(self, vector: Vector) -> Span:
        """The span of one more vector, before the noise."""
        products, place = self.products(vector), sum(part.shape[1] for part in self.vectors)
        gram = np.insert(np.insert(self.gram, place, products, axis=0), place, 0.0, axis=1)
        gram[:, place] = gram[place, :] = np.insert(products, place, inner(vector, vector))
        return Span((*self.vectors, vector[:, None]), self.rows, gram)


@dataclass(slots=True, eq=False)
class SpannedMatrix(FrameMatrix):
    """U diag(values) U^T + rest (I - U U^T) with U = F `coefficients`, orthonormal columns in the span of F."""

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

    def _left(self) -> int:
        return self.span.dim - self.values.size


def orthonormal(gram: Matrix, dtype: np.dtype[np.generic]) -> Matrix:
    """T such that the columns of F T are an orthonormal basis of the span of F, from G = F^T F."""
    lengths = np.sqrt(np.diagonal(gram))
    unit = 1.0 / np.where(lengths > 0.0, lengths, 1.0)  # columns of unit length: their scales say nothing of rank
    squares, vectors = np.linalg.eigh(gram * unit * unit[:, None])
    kept = squares > NEGLIGIBLE[np.dtype(dtype)] * max(float(squares[-1]), 0.0) if squares.size else squares > 0.0
    return np.asarray(unit[:, None] * vectors[:, kept] / np.sqrt(squares[kept]))


def _over_tiles(vectors: tuple[Matrix, ...], rows: NoiseRows, count: int, use: Callable[[slice, Matrix], None]) -> None:
    """Call `use(columns, F[columns].T)` for tiles that cover all columns, on all cores.

    The tiles are the same whether noise is kept or redrawn, and so are the last bits of sums over them.
    """
    widest = min(TILE, vectors[0].shape[0])

    def spans(columns: slice, blocks: Iterator[tuple[slice, Matrix, Matrix]]) -> None:
        width, place = columns.stop - columns.start, 0
        whole = aligned((count, width), vectors[0].dtype)
        for part in vectors:
            whole[place : place + part.shape[1]] = part[columns].T
            place += part.shape[1]
        for which, normals, _ in blocks:
            whole[place + which.start : place + which.stop] = normals
        for start in range(0, width, widest):
            stop = min(start + widest, width)
            tile = np.ascontiguousarray(whole[:, start:stop])
            use(slice(columns.start + start, columns.start + stop), tile)

    rows.over_columns(spans)


def _sum(found: dict[int, Matrix]) -> Matrix:
    """The sum over tiles, in their order."""
    return np.asarray(np.add.reduce([found[start] for start in sorted(found)]))
