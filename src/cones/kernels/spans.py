"""Formulas over long vectors, in tiles that fit the cache.

`elementwise` applies a formula to every number; `tile_sums` sums the results of a formula over tiles. A formula is
plain NumPy on a tile, so temporary arrays are no larger. The result does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cones.kernels.buffers import new_vector
from cones.kernels.threads import for_blocks
from cones.types import Matrix, Vector

__all__ = ["SPAN", "TILE", "elementwise", "extremes", "inner", "tile_count", "tile_slice", "tile_sums", "weighted_sum"]

# Small enough that BLAS does not split a dot product among threads: its last bits would depend on their number.
TILE = 8192
# In a pass over fewer numbers, threads mostly wait for the interpreter lock.
SPAN = 4 * TILE
# Columns per product with a few rows: small enough that BLAS does not split the product among threads.
PIECE = 1024
# Smallest size for which a second thread is worth waking.
WORTH_THREADS = 7 * TILE + 1


def tile_count(size: int, width: int = TILE) -> int:
    return -(-size // width)


def tile_slice(tile: int, size: int, width: int = TILE) -> slice:
    return slice(tile * width, min((tile + 1) * width, size))


def elementwise(formula: Callable[..., Any], *vectors: Vector) -> Any:
    """The vector `formula(*vectors)`, or a tuple of vectors if the formula returns several.

    The formula must be elementwise. It is called with spans of the vectors.
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
        with np.errstate(all="ignore"):  # errstate is per thread; the result shows inf and NaN
            for span in range(start + 1, stop + 1):
                columns = tile_slice(span, size, SPAN)
                found = formula(*(vector[columns] for vector in vectors))
                for result, part in zip(results, found if several else (found,), strict=True):
                    result[columns] = part

    for_blocks(work, tile_count(size, SPAN) - 1, size >= WORTH_THREADS)
    return results if several else results[0]


def tile_sums(formula: Callable[..., Any], *vectors: Vector, width: int = TILE) -> Any:
    """The sum over tiles of `formula(*tiles)`, which returns a number or a tuple of numbers."""
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
    """sum_i weights_i rows_i for a few rows. The last bits do not depend on the memory layout of `rows`."""
    whole = out.size - out.size % PIECE
    if whole:
        pieces = rows[:, :whole].reshape(weights.size, -1, PIECE).transpose(1, 0, 2)
        np.matmul(weights, pieces, out=out[:whole].reshape(-1, PIECE))
    if whole < out.size:
        np.matmul(weights, rows[:, whole:], out=out[whole:])
    return out
