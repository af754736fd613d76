"""Samplers: draw spans of the noise of an iteration, from generators or from a table."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cones.kernels.spans import SPAN, tile_count, tile_slice
from cones.kernels.threads import for_blocks
from cones.types import Matrix, Vector

__all__ = ["GeneratorSampler", "SpanSampler", "TableSampler"]

# Outputs of the generator to discard before the first number of a span, as NumPy does after seeding.
WARM_UP = 12
TABLE_ITERATION = 2**63 - 1  # no run reaches it


class SpanSampler(ABC):
    """Draws spans of the noise of one iteration. Not thread-safe: use one per thread."""

    @abstractmethod
    def draw(self, row: int, span: int, out: Vector) -> None:
        """Fill `out` with the normals of one row in one span of columns."""

    def draw_rows(self, start: int, out: Matrix) -> None:
        """Fill `out` with the normals of rows from `start` on, in the first span of columns."""
        for row, normals in enumerate(out, start):
            self.draw(row, 0, normals)


class GeneratorSampler(SpanSampler):
    """Draws from a generator whose state is reset for every span."""

    def __init__(self, seed: int, rows: int, dtype: str, iteration: int, dim: int) -> None:
        # SFC64 is NumPy's fastest generator; its state is three words and a counter. Setting the state costs a tenth
        # of creating a generator. The words of a row do not depend on the number of rows.
        words = _sequence(seed, iteration).generate_state(3 * rows, np.uint64)
        self._of_row = words.reshape(rows, 3)
        self._of_span = _words_of_spans(tile_count(dim, SPAN))
        self._bits, self._draw, self._state, self._words = _generator()
        self._dtype = np.dtype(dtype)

    def draw(self, row: int, span: int, out: Vector) -> None:
        if span:
            np.bitwise_xor(self._of_row[row], self._of_span[span], out=self._words[:3])
        else:
            self._words[:3] = self._of_row[row]
        self._bits.state = self._state
        if span:
            self._bits.random_raw(WARM_UP, output=False)
        self._draw(None, self._dtype, out)

    def draw_rows(self, start: int, out: Matrix) -> None:
        bits, draw, state, words, dtype = self._bits, self._draw, self._state, self._words[:3], self._dtype
        for row, normals in zip(self._of_row[start:], out, strict=False):
            words[:] = row
            bits.state = state
            draw(None, dtype, normals)


_of_thread = threading.local()


def _generator() -> tuple[Any, ...]:
    """This thread's generator, its `standard_normal`, a state dictionary to assign, and the words inside it."""
    if not hasattr(_of_thread, "parts"):
        bits = np.random.SFC64(0)
        state: Any = bits.state
        words = state["state"]["state"]
        words[3] = 1
        _of_thread.parts = bits, np.random.Generator(bits).standard_normal, state, words
    parts: tuple[Any, ...] = _of_thread.parts
    return parts


def _sequence(seed: int, iteration: int) -> np.random.SeedSequence:
    """Large seeds use the spawn key, so that their upper words cannot collide with an iteration."""
    if seed < 2**32 and iteration < 2**32:
        return np.random.SeedSequence(np.array((seed, iteration), np.uint32))
    if seed < 2**32:
        return np.random.SeedSequence((seed, iteration))
    return np.random.SeedSequence(seed, spawn_key=(iteration,))


@lru_cache(maxsize=4)
def _words_of_spans(count: int) -> NDArray[np.uint64]:
    words = np.asarray(np.random.SeedSequence(SPAN).generate_state(3 * count, np.uint64), np.uint64)
    return words.reshape(-1, 3)


class TableSampler(SpanSampler):
    """Copies from a table of normals that all iterations share (Salimans et al., 2017)."""

    def __init__(self, seed: int, rows: int, dtype: str, iteration: int, dim: int, size: int) -> None:
        self._table = _table(seed, size, dtype)
        seeds = _sequence(seed, iteration)
        shape = rows, tile_count(dim, SPAN)
        words = seeds.generate_state(shape[0] * shape[1], np.uint64).reshape(shape)
        self._starts = (words % np.uint64(size - SPAN + 1)).astype(np.int64)

    def draw(self, row: int, span: int, out: Vector) -> None:
        start = self._starts[row, span]
        out[:] = self._table[start : start + out.size]


@lru_cache(maxsize=1)
def _table(seed: int, size: int, dtype: str) -> Vector:
    """The table, computed once per process on all cores."""
    table = np.empty(size, dtype)

    def work(first: int, last: int) -> None:
        sampler = GeneratorSampler(seed, 2, dtype, TABLE_ITERATION, size)
        for span in range(first, last):
            sampler.draw(0, span, table[tile_slice(span, size, SPAN)])

    for_blocks(work, tile_count(size, SPAN))
    table.flags.writeable = False
    return table
