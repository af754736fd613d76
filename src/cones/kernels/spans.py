"""Formulas over long vectors, in pieces that fit the cache.

Two verbs: `elementwise` applies a formula to every number, `tile_sums` adds up what a formula gives. A formula is plain
NumPy on the pieces that it is handed. Temporary arrays have the size of a piece, any thread can take any piece, and a
result does not depend on which thread, or how many, computed it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cones.kernels.buffers import new_vector
from cones.kernels.threads import for_blocks
from cones.types import Matrix, Vector

__all__ = ["SPAN", "TILE", "elementwise", "extremes", "inner", "tile_count", "tile_slice", "tile_sums", "weighted_sum"]

# Below the size from which BLAS splits a dot product among its threads, whose number would then decide its last bits.
TILE = 8192
# A pass over fewer numbers is so short that threads wait for each other's interpreter lock.
SPAN = 4 * TILE
# Columns of a few rows that are multiplied at a time: below the size from which BLAS splits such a product.
PIECE = 1024
# Numbers from which on a second thread is worth waking.
WORTH_THREADS = 7 * TILE + 1


def tile_count(size: int, width: int = TILE) -> int:
    return -(-size // width)


def tile_slice(tile: int, size: int, width: int = TILE) -> slice:
    return slice(tile * width, min((tile + 1) * width, size))


def elementwise(formula: Callable[..., Any], *vectors: Vector) -> Any:
    """The vector `formula(*vectors)`, or a tuple of vectors if the formula gives several.

    The formula must treat each number by itself. It is called with spans of the vectors.
    """
    size = vectors[0].size
    if size <= SPAN:
        return formula(*vectors)
    first = formula(*(vector[:SPAN] for vector in vectors))
    several = isinstance(first, tuple)
    parts = first if several else (first,)
    results = tuple(new_vector(size, part.dtype) for part in parts)
    for result, part in zip(results, parts, strict=True):
        result[:SPAN] = part

    def work(start: int, stop: int) -> None:
        with np.errstate(all="ignore"):  # of this thread; what overflows or is no number is seen in the result
            for span in range(start + 1, stop + 1):
                columns = tile_slice(span, size, SPAN)
                found = formula(*(vector[columns] for vector in vectors))
                for result, part in zip(results, found if several else (found,), strict=True):
                    result[columns] = part

    for_blocks(work, tile_count(size, SPAN) - 1, size >= WORTH_THREADS)
    return results if several else results[0]


def tile_sums(formula: Callable[..., Any], *vectors: Vector, width: int = TILE) -> Any:
    """The sum over all tiles of what `formula` gives for a tile of each vector: a number or a tuple of numbers."""
    size = vectors[0].size
    if size <= width:
        return formula(*vectors)
    count = tile_count(size, width)
    found: list[Any] = [None] * count

    def work(start: int, stop: int) -> None:
        with np.errstate(all="ignore"):
            for tile in range(start, stop):
                columns = tile_slice(tile, size, width)
                found[tile] = formula(*(vector[columns] for vector in vectors))

    for_blocks(work, count, size >= WORTH_THREADS)
    sums = np.array(found).sum(axis=0)
    return tuple(float(total) for total in sums) if sums.ndim else float(sums)


def inner(x: Vector, y: Vector) -> float:
    """<x, y>, summed tile by tile in double precision."""
    if x.size <= TILE:
        return float(np.vdot(x, y) if x.dtype == np.float64 else np.vdot(x.astype(np.float64), y.astype(np.float64)))
    return float(tile_sums(inner, x, y))


def extremes(x: Vector) -> tuple[float, float]:
    """The smallest and the largest number."""
    if x.size <= TILE:
        return float(x.min()), float(x.max())
    found = np.empty((tile_count(x.size), 2))

    def work(start: int, stop: int) -> None:
        for tile in range(start, stop):
            part = x[tile_slice(tile, x.size)]
            found[tile] = part.min(), part.max()

    for_blocks(work, len(found), x.size >= WORTH_THREADS)
    return float(found[:, 0].min()), float(found[:, 1].max())


def weighted_sum(weights: Vector, rows: Matrix, out: Vector) -> Vector:
    """sum_i weights_i rows_i, of not more than a few rows; the same to the last bit wherever they lie in memory."""
    whole = out.size - out.size % PIECE
    if whole:
        pieces = rows[:, :whole].reshape(weights.size, -1, PIECE).transpose(1, 0, 2)
        np.matmul(weights, pieces, out=out[:whole].reshape(-1, PIECE))
    if whole < out.size:
        np.matmul(weights, rows[:, whole:], out=out[whole:])
    return out
