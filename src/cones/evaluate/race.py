r"""Early ends: a candidate that is sure to be among the worse half of its population need not be evaluated to its end.

The objective reports b <= f(x), a loss so far that can only grow. With k the better half of N candidates and f_(k) the
k-th lowest of the losses that are complete, at least k candidates are better once

    b > f_(k) ,        k = N - floor(N / 2)

whatever the others turn out to be. The candidate then ends. It counts by its rank, which is behind the better half for
sure; within the worse half the rank is that of the expected loss, as if costs came evenly, s being the share done:

    max(b, b / s)
"""

from __future__ import annotations

import math
import os
import struct
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from cones.checks import check_number
from cones.errors import InputError
from cones.evaluate.candidates import Candidates
from cones.evaluate.evaluator import Evaluator
from cones.types import Vector

__all__ = ["Race", "RacedFunction", "RacingEvaluator", "ScoreBoard"]

HEADER = struct.Struct("<qq")  # number of the population, size of its better half; 0 if it does not race
ENTRY = np.dtype([("candidate", "<u8"), ("loss", "<f8")])


class ScoreBoard:
    """The complete losses of a population, in a file that all workers of a machine append to.

    Where the file does not exist, as on another machine, nothing is ended.
    """

    def __init__(self) -> None:
        descriptor, self.path = tempfile.mkstemp(prefix="cones-race-")
        os.close(descriptor)
        self._population = 0

    def begin(self, better_half: int) -> None:
        """Forget the last population."""
        self._population += 1
        with open(self.path, "wb") as file:
            file.write(HEADER.pack(self._population, better_half))

    def read(self) -> tuple[int, float]:
        """The number of the population and f_(k), which is infinite while fewer than k losses are complete."""
        try:
            with open(self.path, "rb") as file:
                content = file.read()
            population, better_half = HEADER.unpack_from(content)
        except (OSError, struct.error):
            return -1, math.inf
        whole = (len(content) - HEADER.size) // ENTRY.itemsize
        entries = np.frombuffer(content, ENTRY, whole, HEADER.size)
        # A candidate that was tried twice counts once.
        losses = entries["loss"][np.unique(entries["candidate"], return_index=True)[1]]
        if not 0 < better_half <= losses.size:
            return population, math.inf
        return population, float(np.partition(losses, better_half - 1)[better_half - 1])

    def size(self) -> int:
        """Bytes of the file, which grow with every loss."""
        try:
            return os.stat(self.path).st_size
        except OSError:
            return 0

    def add(self, population: int, x: Vector, loss: float) -> None:
        """Add a complete loss, unless its population is over."""
        if population < 0 or math.isnan(loss) or self.read()[0] != population:
            return
        entry = np.array((int.from_bytes(blake2b(x.tobytes(), digest_size=8).digest(), "little"), loss), ENTRY)
        with suppress(OSError), open(self.path, "ab", buffering=0) as file:
            file.write(entry.tobytes())

    def remove(self) -> None:
        with suppress(FileNotFoundError):
            os.remove(self.path)


class Race:
    """The handle that `fun(x, race=race)` gets with `early_end=True`.

    Attributes:
        loss, done: what was reported last.
        ended: True once `is_over` has returned True.
    """

    def __init__(self, board: ScoreBoard) -> None:
        self._board, self._size = board, board.size()
        self.population, self._threshold = board.read()
        self.loss, self.done, self.ended = -math.inf, 0.0, False

    def is_over(self, loss: float, done: float) -> bool:
        """Report the loss so far; True if the candidate is sure to be among the worse half: return at once.

        Args:
            loss: a lower bound of the final loss, such as a sum of costs so far. It must not fall.
            done: the share of the evaluation that is done, from 0 to 1; it tells how much an end saves.
        """
        loss, done = check_number("race: loss", loss), check_number("race: done", done)
        if loss < self.loss:
            raise InputError(f"race: expected losses so far that do not fall, got {loss:g} after {self.loss:g}")
        if not self.done <= done <= 1.0:
            raise InputError(f"race: expected done to grow from 0 to 1, got {done:g} after {self.done:g}")
        self.loss, self.done = loss, done
        if (size := self._board.size()) != self._size:
            population, threshold = self._board.read()
            self._size, self._threshold = size, threshold if population == self.population else math.inf
        self.ended = self.ended or loss > self._threshold
        return self.ended

    def expected(self) -> float:
        """The loss at the end, if it grows as it has so far: at least the loss so far."""
        return max(self.loss, self.loss / self.done) if self.done > 0.0 else self.loss


@dataclass(frozen=True)
class RacedFunction:
    """Calls `fun(x, *args, race=...)`. Returns the loss, the share that was done, and 1 if the candidate has ended."""

    fun: Callable[..., Any]
    board: ScoreBoard

    def __call__(self, x: Vector, *args: Any) -> tuple[Any, float, float]:
        kept, race = x.copy(), Race(self.board)
        loss = self.fun(x, *args, race=race)
        if race.ended:
            return race.expected(), race.done, 1.0
        number = np.asarray(loss)
        if number.size == 1 and number.dtype.kind in "fiub":
            final = float(number.reshape(()))
            if final < race.loss:
                raise InputError(
                    f"race: expected losses so far below the final one, got {race.loss:g} so far, {final:g} at the end"
                )
            self.board.add(race.population, kept, final)
        return loss, 1.0, 0.0


class RacingEvaluator(Evaluator):
    """Evaluates a `RacedFunction` by another evaluator.

    Attributes:
        races: True if the next population is one whose candidates compete, and not measurements of one point.
        ended, saved: of the last population, the number of candidates that were ended and the share of work saved.
    """

    def __init__(self, evaluator: Evaluator, board: ScoreBoard) -> None:
        super().__init__()
        self._evaluator, self._board = evaluator, board
        self.races = False
        self.ended, self.saved = 0, 0.0

    def losses(self, candidates: Candidates) -> Vector:
        count = len(candidates)
        self._board.begin(count - count // 2 if self.races else 0)
        try:
            table = self._evaluator.losses(candidates)
        finally:
            partial, self.failures = self._evaluator.partial, self._evaluator.failures
            self.partial = None if partial is None else partial[:, 0]
        with np.errstate(invalid="ignore"):
            is_ended = table[:, 2] == 1.0
        self.ended, self.saved = int(is_ended.sum()), float((1.0 - table[is_ended, 1]).sum()) / count
        return np.ascontiguousarray(table[:, 0])

    def close(self) -> None:
        try:
            self._evaluator.close()
        finally:
            self._board.remove()

    def abort(self) -> None:
        try:
            self._evaluator.abort()
        finally:
            self._board.remove()
