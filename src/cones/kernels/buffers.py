"""Memory of large arrays: aligned to cache lines, and reused.

An instruction on 64 bytes takes twice as long if they lie in two cache lines, as they do in large arrays of `np.empty`.

The system clears new memory page by page, which costs as much as several passes over it. A pool keeps arrays and hands
out those that nobody refers to any more. Inside `tell`, `new_vector` takes from the strategy's pool.
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
# Bytes from which on it is worth a few microseconds to begin at one.
WORTH_ALIGNING = 2**17

# Bytes from which on memory comes from the system and not from what the process has freed.
LARGE = 2**20
# What is kept at most, and free at most: an iteration needs fewer. A user who holds on to many, and lets them go, shall
# not find them here.
LARGEST_POOL, MOST_FREE = 32, 12


class BufferPool:
    """Arrays of which those can be taken that are referred to from nowhere else."""

    def __init__(self) -> None:
        self._arrays: list[Bytes] = []

    def __enter__(self) -> Self:
        """`new_vector` takes from this pool, in this thread."""
        self._token = _POOL.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _POOL.reset(self._token)

    def take(self, shape: tuple[int, ...], dtype: DTypeLike) -> Matrix:
        """An array with whatever numbers are in its memory. It is free again when it and all its views are gone."""
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
    """As `np.empty`; if it is not small, from the beginning of a cache line."""
    size = _bytes(shape, dtype)
    return np.empty(shape, dtype) if size < WORTH_ALIGNING else _view(np.empty(size, np.uint8), shape, dtype)


def _bytes(shape: tuple[int, ...], dtype: DTypeLike) -> int:
    return math.prod(shape) * np.dtype(dtype).itemsize + LINE


def _view(array: Bytes, shape: tuple[int, ...], dtype: DTypeLike) -> Matrix:
    """It refers to the array of bytes for as long as it lives."""
    first = -int(array.__array_interface__["data"][0]) % LINE
    return array[first : first + array.size - LINE].view(dtype).reshape(shape)


def _references(arrays: list[Any], place: int) -> int:
    return sys.getrefcount(arrays[place])


# How many there are to what only a list holds is not the same in all versions of Python.
ONLY_HERE = _references([object()], 0)
_POOL: ContextVar[BufferPool | None] = ContextVar("pool", default=None)


def new_vector(size: int, dtype: DTypeLike) -> Vector:
    """A vector with whatever numbers are in its memory, as `np.empty` gives it."""
    pool = _POOL.get()
    if pool is None or size * np.dtype(dtype).itemsize < LARGE:
        return aligned((size,), dtype)
    return pool.take((size,), dtype)
