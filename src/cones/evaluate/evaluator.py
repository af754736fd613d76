"""The interface of an evaluator: candidates in, losses out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from cones.errors import InputError
from cones.kernels.buffers import BufferPool
from cones.sampling import Population
from cones.types import Matrix, Vector

__all__ = ["Candidates", "Evaluator", "Objective"]


@dataclass(frozen=True)
class Objective:
    """What to minimise: `fun(x, *args)` for one candidate, or for many rows at once if `vectorized`."""

    fun: Callable[..., Any]
    args: Sequence[Any] = ()
    vectorized: bool = False

    def losses(self, rows: Matrix, first: int, out: Vector | None = None, own: bool = False) -> Vector:
        """Losses of `rows`, the candidates from index `first` on, written to `out` as they come if it is given.

        `own` says that the rows are of no use afterwards. An exception in `fun` goes on to the caller with a note that
        names the candidate.
        """
        if self.vectorized:
            try:
                return self._checked(self.fun(rows, *self.args), len(rows))
            except Exception as error:
                error.add_note(f"cones: raised by fun for candidates {first} to {first + len(rows) - 1}")
                raise
        losses = np.empty(len(rows)) if out is None else out
        for index, row in enumerate(rows, start=first):
            try:
                # `fun` may change its argument.
                losses[index - first] = self._checked(self.fun(row if own else row.copy(), *self.args), 1)[0]
            except Exception as error:
                error.add_note(f"cones: raised by fun for candidate {index}")
                raise
        return losses

    def losses_of(
        self, population: Population, first: int, last: int, out: Vector | None = None, pool: BufferPool | None = None
    ) -> Vector:
        """Losses of candidates `first` to `last` of a population, of which only a chunk is made at a time.

        All chunks are made in the same memory, from `pool` if it is given, unless `fun` has kept hold of it.
        """
        losses = np.empty(last - first) if out is None else out
        size = min(population.chunk_size, last - first)
        pool = pool or BufferPool()
        for start in range(first, last, size):
            stop = min(start + size, last)
            part = losses[start - first : stop - first]
            memory = pool.take((size, population.shape[1]), population.noise.dtype)[: stop - start]
            part[:] = self.losses(population.block(start, stop, out=memory), start, part, own=True)
            del memory
        return losses

    def _checked(self, value: Any, count: int) -> Vector:
        if isinstance(value, np.ma.MaskedArray):
            value = np.ma.filled(value.astype(np.float64), np.nan)
        array = np.asarray(value)
        if array.dtype.kind not in "fiub" or array.size != count:
            expected = "a number" if count == 1 and not self.vectorized else f"{count} numbers, one per row"
            raise InputError(f"fun: expected it to return {expected}, got {type(value).__name__} {value!r:.60}")
        return np.asarray(array, dtype=np.float64).reshape(count)


Candidates = Matrix | Population


class Evaluator(ABC):
    """Evaluates a population. Losses come back in the order of the candidates.

    Attributes:
        partial: while `losses` is at work, and after it was interrupted, the losses that are known, NaN
            for the others; None where an evaluator cannot tell.
        failures: why candidates of the last population have no loss, by their place.
    """

    partial: Vector | None = None
    failures: dict[int, str]

    def __init__(self) -> None:
        self.failures = {}

    @abstractmethod
    def losses(self, candidates: Candidates) -> Vector:
        """One loss per candidate."""

    def close(self) -> None:  # noqa: B027 - most evaluators hold nothing
        """Release what the evaluator itself has started."""

    def abort(self) -> None:
        """Release it without waiting for work under way."""
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()
