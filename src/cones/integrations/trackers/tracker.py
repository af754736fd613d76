"""The interface of a tracker: a callback that keeps the numbers of every iteration."""

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

    It keeps the columns of the history (best, mean_loss, step, spread, kl, ...) over the evaluations so far, and
    those of a training run (population_reward, mean_reward, ...) over its timesteps. What is not a finite number is
    left out. Leaving the `with` block ends the run on the other side, as finished or, after an exception, as failed.
    """

    def __init__(self) -> None:
        self._kept: dict[str, float] = {}
        self._at = -1

    def __call__(self, intermediate_result: Any) -> None:
        """Keep the numbers of an iteration: of an `intermediate_result`, or of a `Training`."""
        numbers = _numbers(intermediate_result)
        evaluations = numbers.pop("evaluations", 0.0)
        step = int(numbers.pop("timesteps", evaluations))
        if step != self._at:
            self._at, self._kept = step, {}
        # A training run reports an iteration again once the mean policy is evaluated: keep what is new.
        new = {name: value for name, value in numbers.items() if name not in self._kept}
        if new:
            self._kept |= new
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
        """Keep finite numbers by name at a place on the horizontal axis."""

    @abstractmethod
    def _end(self, how: End) -> None:
        """Write what is not yet written, and end the run."""


def _numbers(source: Any) -> dict[str, float]:
    row = source if isinstance(source, Mapping) else source.row()
    return {
        name: float(value)
        for name, value in row.items()
        if isinstance(value, (int, float, np.number)) and math.isfinite(value) and name not in ("fun", "nfev")
    }
