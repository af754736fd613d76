"""Vectors in pieces that fit the cache.

Sums go by tiles, noise and what is done to each number by itself by spans of a few tiles: temporary arrays are of
that size and not of the vector's, any thread can take any piece, and a number does not depend on which thread, or how
many, computed it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cones.kernels.threads import for_blocks
from cones.types import Matrix, Vector

__all__ = [
    "SPAN", "TILE", "extremes", "for_each_span", "for_each_tile", "inner", "tile_count", "tile_slice", "weighted_sum"
]  # fmt: skip

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


def for_each_tile(work: Callable[[int, slice], None], size: int, width: int = TILE) -> None:
    """Call `work(tile, part)` for every tile of a vector, on all cores if there are many."""
    if size <= width:
        work(0, slice(0, size))
        return

    def block(first: int, last: int) -> None:
        # Of this thread; what overflows or is no number is seen in the result.
        with np.errstate(all="ignore"):
            for tile in range(first, last):
                work(tile, tile_slice(tile, size, width))

    for_blocks(block, tile_count(size, width), size >= WORTH_THREADS)


def for_each_span(work: Callable[[slice], None], size: int) -> None:
    """Call `work(part)` for every span of a vector: for what is done to each number by itself."""
    for_each_tile(lambda _, part: work(part), size, SPAN)


def inner(x: Vector, y: Vector) -> float:
    """<x, y>, summed tile by tile in double precision."""
    if x.size <= TILE:
        return float(np.asarray(x, np.float64) @ np.asarray(y, np.float64))
    sums = np.empty(tile_count(x.size))

    def work(tile: int, part: slice) -> None:
        sums[tile] = inner(x[part], y[part])

    for_each_tile(work, x.size)
    return float(sums.sum())


def extremes(x: Vector) -> tuple[float, float]:
    """The smallest and the largest number."""
    if x.size <= TILE:
        return float(x.min()), float(x.max())
    found = np.empty((tile_count(x.size), 2))

    def work(tile: int, part: slice) -> None:
        found[tile] = x[part].min(), x[part].max()

    for_each_tile(work, x.size)
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
