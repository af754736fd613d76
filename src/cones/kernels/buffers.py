"""Memory of large arrays: aligned to cache lines, and reused.

A 64-byte instruction takes twice as long across two cache lines. Large arrays of `np.empty` are not aligned to lines.

The system clears new memory page by page, which costs as much as several passes over it. A pool keeps arrays and reuses
those without other references. Inside `tell`, `new_vector` takes arrays from the strategy's pool.
"""

from __future__ import annotations

import math
import sys
from contextvars import ContextVar
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cones.types import Matrix, Vector

__all__ = ["BufferPool", "aligned", "new_vector"]

Bytes = NDArray[np.uint8]
LINE = 64  # bytes of a cache line
# Smallest size in bytes for which alignment is worth a few microseconds.
WORTH_ALIGNING = 2**17

# Smallest size in bytes for which malloc takes new memory from the system instead of reusing freed memory.
LARGE = 2**20
# Largest number of arrays in the pool, and of free ones. An iteration needs fewer; the limits release the memory of
# arrays that a user held for a while.
LARGEST_POOL, MOST_FREE = 32, 12


class BufferPool:
    """Arrays that are reused when nothing else refers to them."""

    def __init__(self) -> None:
        self._arrays: list[Bytes] = []

    def __enter__(self) -> Self:
        """Make `new_vector` take arrays from this pool, in this thread."""
        self._token = _POOL.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _POOL.reset(self._token)

    def take(self, shape: tuple[int, ...], dtype: DTypeLike) -> Matrix:
        """An uninitialised array. It returns to the pool when it and all its views are deleted."""
        free = [place for place in range(len(self._arrays)) if _references(self._arrays, place) == ONLY_HERE]
        for place in reversed(free[MOST_FREE:]):
            del self._arrays[place]
        size = _bytes(shape, dtype)
        for place in free[:MOST_FREE]:
            if self._arrays[place].size == size:
                return _view(self._arrays[place], shape, dtype)
        array = np.empty(size, np.uint8)
        if len(self._arrays) < LARGEST_POOL:
            self._arrays.append(array)
        return _view(array, shape, dtype)


def aligned(shape: tuple[int, ...], dtype: DTypeLike) -> Matrix:
    """`np.empty`, aligned to a cache line unless it is small."""
    size = _bytes(shape, dtype)
    return np.empty(shape, dtype) if size < WORTH_ALIGNING else _view(np.empty(size, np.uint8), shape, dtype)


def _bytes(shape: tuple[int, ...], dtype: DTypeLike) -> int:
    return math.prod(shape) * np.dtype(dtype).itemsize + LINE


def _view(array: Bytes, shape: tuple[int, ...], dtype: DTypeLike) -> Matrix:
    """An aligned view, which keeps a reference to `array`."""
    first = -int(array.__array_interface__["data"][0]) % LINE
    return array[first : first + array.size - LINE].view(dtype).reshape(shape)


def _references(arrays: list[Any], place: int) -> int:
    return sys.getrefcount(arrays[place])


# The reference count of an object that only a list holds depends on the version of Python.
ONLY_HERE = _references([object()], 0)
_POOL: ContextVar[BufferPool | None] = ContextVar("pool", default=None)


def new_vector(size: int, dtype: DTypeLike) -> Vector:
    """An uninitialised vector, from the current pool if it is large."""
    pool = _POOL.get()
    if pool is None or size * np.dtype(dtype).itemsize < LARGE:
        return aligned((size,), dtype)
    return pool.take((size,), dtype)
