"""Memory of large arrays: where cache lines begin, and used again.

An instruction that works on 64 bytes takes twice as long where they lie in two lines of the cache, as they do in what
`np.empty` gives for large arrays.

The system clears new memory page by page, which costs as much as several passes over it. A shelf keeps the arrays that
were once needed, and gives those again that nobody holds any more. Inside `tell`, `new_vector` takes from the
strategy's shelf.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cones.types import Matrix, Vector

__all__ = ["Shelf", "aligned", "new_vector"]

Bytes = NDArray[np.uint8]
LINE = 64  # bytes of a cache line
# Bytes from which on it is worth a few microseconds to begin at one.
WORTH_ALIGNING = 2**17

# Bytes from which on memory comes from the system and not from what the process has freed.
LARGE = 2**20
# What is kept at most, and free at most: an iteration needs fewer. A user who holds on to many, and lets them go, shall
# not find them here.
LARGEST_SHELF, MOST_FREE = 32, 12


class Shelf:
    """Arrays of which those can be taken that are referred to from nowhere else."""

    def __init__(self) -> None:
        self._arrays: list[Bytes] = []

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """`new_vector` takes from this shelf, in this thread."""
        token = _SHELF.set(self)
        try:
            yield
        finally:
            _SHELF.reset(token)

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
        if len(self._arrays) < LARGEST_SHELF:
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
_SHELF: ContextVar[Shelf | None] = ContextVar("shelf", default=None)


def new_vector(size: int, dtype: DTypeLike) -> Vector:
    """A vector with whatever numbers are in its memory, as `np.empty` gives it."""
    shelf = _SHELF.get()
    if shelf is None or size * np.dtype(dtype).itemsize < LARGE:
        return aligned((size,), dtype)
    return shelf.take((size,), dtype)
