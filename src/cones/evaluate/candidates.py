"""Rows of a population, whether it is an array or a `Population` that makes them when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cones.kernels.buffers import BufferPool
from cones.sampling import Population
from cones.types import Matrix

__all__ = ["Candidates", "chunks", "is_lazy", "rows"]

Candidates = Matrix | Population


def is_lazy(candidates: Candidates) -> bool:
    """True if candidates are made when they are asked for."""
    return not isinstance(candidates, np.ndarray)


def rows(candidates: Candidates, first: int, last: int) -> Matrix:
    """Candidates `first` to `last`, shape (last - first, n)."""
    return candidates[first:last] if isinstance(candidates, np.ndarray) else candidates.block(first, last)


def chunks(
    candidates: Candidates, first: int, last: int, pool: BufferPool | None = None
) -> Iterator[tuple[int, Matrix]]:
    """Candidates `first` to `last` in chunks, each with the index of its first row.

    An array is one chunk: it holds these rows and no others. A population makes all chunks in the same memory, from
    `pool` if it is given, unless somebody still holds the chunk before.
    """
    if isinstance(candidates, np.ndarray):
        yield first, candidates
        return
    size, pool = min(candidates.chunk_size, last - first), pool or BufferPool()
    for start in range(first, last, size):
        stop = min(start + size, last)
        out = pool.take((size, candidates.shape[1]), candidates.noise.dtype)[: stop - start]
        chunk = candidates.block(start, stop, out=out)
        del out
        yield start, chunk
        del chunk
