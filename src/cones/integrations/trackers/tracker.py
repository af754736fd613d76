"""The interface of a tracker: a callback that logs the numbers of every iteration."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np

__all__ = ["End", "Tracker"]

End = Literal["finished", "failed", "interrupted"]


class Tracker(ABC):
    """A callback of `cones.minimize`, `cones.resume`, `cones.rl.train` and `cones.rl.resume`, used as

        with SomeTracker(...) as tracker:
            cones.minimize(..., callback=tracker)

    It logs the columns of the history (best, mean_loss, step, spread, kl, ...) over evaluations, and those of a
    training run (population_reward, mean_reward, ...) over timesteps. It skips values that are not finite. Leaving the
    `with` block ends the tracked run: as finished, or as failed after an exception.
    """

    def __init__(self) -> None:
        self._logged: dict[str, float] = {}
        self._step = -1

    def __call__(self, intermediate_result: Any) -> None:
        """Log the numbers of an `intermediate_result` or of a `Training`."""
        numbers = _numbers(intermediate_result)
        evaluations = numbers.pop("evaluations", 0.0)
        step = int(numbers.pop("timesteps", evaluations))
        if step != self._step:
            self._step, self._logged = step, {}
        # A training run reports an iteration again after it has evaluated the mean policy: log what is new.
        new = {name: value for name, value in numbers.items() if name not in self._logged}
        if new:
            self._logged |= new
            self._log(new, step)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._end("finished")
        else:
            self._end("interrupted" if issubclass(kind, KeyboardInterrupt) else "failed")

    @abstractmethod
    def _log(self, numbers: Mapping[str, float], step: int) -> None:
        """Log finite numbers by name at a step of the horizontal axis."""

    @abstractmethod
    def _end(self, how: End) -> None:
        """Flush the log and end the run."""


def _numbers(source: Any) -> dict[str, float]:
    row = source if isinstance(source, Mapping) else source.row()
    return {
        name: float(value)
        for name, value in row.items()
        if isinstance(value, (int, float, np.number)) and math.isfinite(value) and name not in ("fun", "nfev")
    }
