"""Memory of large arrays, used again.

The system clears new memory page by page, which costs as much as several passes over it. A shelf keeps the arrays that
were once needed, and gives those again that nobody holds any more. Inside `tell`, `new_vector` takes from the
strategy's shelf.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from cones.types import Matrix, Vector

__all__ = ["Shelf", "new_vector"]

# Bytes from which on memory comes from the system and not from what the process has freed.
LARGE = 2**20
# What is kept at most, and free at most: an iteration needs fewer. A user who holds on to many, and lets them go, shall
# not find them here.
LARGEST_SHELF, MOST_FREE = 32, 12


class Shelf:
    """Arrays of which those can be taken that are referred to from nowhere else."""

    def __init__(self) -> None:
        self._arrays: list[Matrix] = []

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
        for place in free[:MOST_FREE]:
            array = self._arrays[place]
            if array.shape == shape and array.dtype == dtype:
                return array[:]  # a view: it refers to the array for as long as it lives
        array = np.empty(shape, dtype)
        if len(self._arrays) < LARGEST_SHELF:
            self._arrays.append(array)
        return array[:]


def _references(arrays: list[Any], place: int) -> int:
    return sys.getrefcount(arrays[place])


# How many there are to what only a list holds is not the same in all versions of Python.
ONLY_HERE = _references([object()], 0)
_SHELF: ContextVar[Shelf | None] = ContextVar("shelf", default=None)


def new_vector(size: int, dtype: DTypeLike) -> Vector:
    """A vector with whatever numbers are in its memory, as `np.empty` gives it."""
    shelf, dtype = _SHELF.get(), np.dtype(dtype)
    if shelf is None or size * dtype.itemsize < LARGE:
        return np.empty(size, dtype)
    return shelf.take((size,), dtype)
