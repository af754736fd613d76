"""What is evaluated, an `Objective`, and what evaluates it, an `Evaluator`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from cones.errors import InputError
from cones.evaluate.candidates import Candidates, chunks, is_lazy
from cones.evaluate.stream import Stream
from cones.kernels.buffers import BufferPool
from cones.space.constraints import Constraints
from cones.types import Matrix, Vector

__all__ = ["Evaluator", "Objective"]


@dataclass(frozen=True)
class Objective:
    """A function to minimise.

    Args:
        fun: `fun(x, *args)` returns the loss of a candidate; if `vectorized`, one loss per row of an array.
        width: how many numbers `fun` returns per candidate. The first is its loss; the others are measurements.
        constraints: evaluated with `fun`; their numbers follow those of `fun`.
        rowwise: True if a vectorized `fun` works on one row after the other: slow rows may be sent one by one.

    Example:
        >>> Objective(lambda x, power: x.sum() ** power, (2,)).losses(np.array([[1.0, 2.0], [0.0, 1.0]]))
        array([9., 1.])
    """

    fun: Callable[..., Any]
    args: Sequence[Any] = ()
    vectorized: bool = False
    width: int = 1
    constraints: Constraints | None = None
    rowwise: bool = False

    def unknown(self, count: int) -> Vector:
        """NaN for `count` candidates: one loss each, or a row each if there are more numbers than that."""
        width = self.width + (0 if self.constraints is None else self.constraints.count)
        return np.full(count if width == 1 else (count, width), np.nan)

    def losses(
        self,
        candidates: Candidates,
        first: int = 0,
        last: int | None = None,
        out: Vector | None = None,
        pool: BufferPool | None = None,
    ) -> Vector:
        """The losses of candidates `first` to `last`; with width > 1 or constraints a row of numbers per candidate.

        Args:
            candidates: an array of these rows, or the `Population` they belong to.
            out: where losses are written as they come.
            pool: memory for chunks of a population.

        An exception in `fun` goes on to the caller with a note that names the candidate.
        """
        last = first + len(candidates) if last is None else last
        losses = self.unknown(last - first) if out is None else out
        for start, chunk in chunks(candidates, first, last, pool):
            part = losses[start - first : start - first + len(chunk)]
            if self.vectorized:
                self._all_at_once(chunk, start, part)
            else:
                self._one_by_one(chunk, start, part, own=is_lazy(candidates))
            del chunk  # its memory is used for the next
        return losses

    def _all_at_once(self, rows: Matrix, first: int, out: Vector) -> None:
        try:
            out[:] = self._row(rows, rows, len(rows))
        except (Exception, SystemExit) as error:
            error.add_note(f"cones: raised by fun for candidates {first} to {first + len(rows) - 1}")
            raise

    def _one_by_one(self, rows: Matrix, first: int, out: Vector, own: bool) -> None:
        for index, row in enumerate(rows):
            try:
                # `fun` may change its argument.
                out[index] = self._row(row if own else row.copy(), row[None, :], 1)[0]
            except (Exception, SystemExit) as error:
                error.add_note(f"cones: raised by fun for candidate {first + index}")
                error.cones_candidate = first + index  # type: ignore[union-attr]
                raise

    def _row(self, argument: Matrix, rows: Matrix, count: int) -> Vector:
        if self.constraints is None:
            return self._checked(self.fun(argument, *self.args), count)
        sides = self.constraints.sides(rows)  # first, because `fun` may change its argument
        return np.column_stack([self._checked(self.fun(argument, *self.args), count), sides])

    def _checked(self, value: Any, count: int) -> Vector:
        if isinstance(value, np.ma.MaskedArray):
            value = np.ma.filled(value.astype(np.float64), np.nan)
        try:
            array, width = np.asarray(value), self.width
        except Exception as error:  # of a tensor that needs a gradient, is of a type that NumPy lacks, or on a device
            what = "losses.detach().double().cpu()" if self.vectorized else "loss.item()"
            raise InputError(
                f"fun: expected it to return what NumPy can read, got {type(value).__name__} ({error}); return {what}"
            ) from None
        if array.dtype.kind not in "fiub" or array.size != count * width:
            single = "a number" if width == 1 else f"{width} numbers"
            many = f"{count} numbers, one per row" if width == 1 else f"{count} rows of {width} numbers"
            expected = many if self.vectorized or count > 1 else single
            raise InputError(f"fun: expected it to return {expected}, got {type(value).__name__} {value!r:.60}")
        return np.asarray(array, dtype=np.float64).reshape(count if width == 1 else (count, width))


class Evaluator(ABC):
    """Computes the losses of a population.

    An evaluator of your own takes an `Objective` and implements `losses`; pass the class as `workers`:

        class Doubled(Evaluator):
            def __init__(self, objective):
                super().__init__()
                self._objective = objective

            def losses(self, candidates):
                return 2.0 * self._objective.losses(candidates)

        cones.minimize(fun, x0, workers=Doubled)           # or workers="my_module:Doubled"

    The run makes one `Doubled(objective)`, calls `losses` once per iteration, and at the end `close`, or `abort` if
    an exception or Ctrl-C ended it. An instance is used and closed in the same way; what it evaluates is its own
    affair.

    `candidates` is an array of shape (popsize, n), one candidate per row, or, where that would not fit into memory, a
    `cones.Population`: `len(candidates)` works with both, `cones.evaluate.rows(candidates, first, last)` gives some
    rows of either, and `objective.losses(candidates, first, last)` their losses.

    Attributes:
        partial: while `losses` runs, and after it was interrupted, the losses that are known, NaN for the others; None
            if the evaluator does not know.
        failures: reasons why candidates of the last population have no loss, by index.
    """

    partial: Vector | None = None
    failures: dict[int, str]

    def __init__(self, objective: Objective | None = None) -> None:
        self.objective = objective
        self.failures = {}

    @abstractmethod
    def losses(self, candidates: Candidates) -> Vector:
        """One loss per candidate, in order; NaN for a candidate without one."""

    def stream(self) -> Stream[Any]:
        """Candidates one after the other, for `asynchronous=True`. An evaluator that does not override it cannot."""
        raise InputError(
            "workers: expected a number, an Executor, an Engine, Ray or Dask with asynchronous=True, "
            f"got {type(self).__name__}, which evaluates whole populations"
        )

    def close(self) -> None:  # noqa: B027 - most evaluators hold nothing
        """Release what the evaluator itself has started."""

    def abort(self) -> None:
        """Release it without waiting for evaluations in progress."""
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()
