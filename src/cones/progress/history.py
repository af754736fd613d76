"""Where a run stands: everything that an iteration replaces, and the history it leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cones.beliefs.belief import Belief
from cones.types import Vector

__all__ = ["COLUMNS", "RADII", "History", "State"]


@dataclass(frozen=True)
class State:
    """The state after an iteration. A new one replaces it as a whole, so that none is half made."""

    belief: Belief
    memory: Any = None  # of the method; None before the first step
    popsize: int = 0  # candidates of the next iteration
    iteration: int = 0
    evaluations: int = 0
    best_x: Vector | None = None
    best_fun: float = math.inf
    seconds: float = 0.0
    fault: str = ""  # the name of a stop reason that the last iteration gave by itself
    restarts: int = 0  # so far
    began: int = 0  # the iteration, and evaluations before it, of the last restart
    began_evaluations: int = 0


# Of the KL balls, for methods that have them, and of the path of the mean's last directions: above 1 if they agree.
RADII = ("mean_radius", "scale_radius", "shape_radius", "path_length")
# One number per iteration each:
COLUMNS = (
    "evaluations",  # so far
    "best",  # lowest loss so far
    "mean_loss",  # of the population's finite losses
    "loss_deviation",  # their standard deviation
    "step",  # length of the mean's step
    "spread",  # root of the belief's mean variance per coordinate, after the step
    "kl",  # KL(new belief || old belief)
    "multiplier",  # of the convex step; NaN for methods without one
    "gap",  # duality gap of the convex step
    *RADII,
    "failures",  # NaN losses in the population
    "seconds",  # of the run so far
)


class History:
    """One row per iteration, read by column.

    Example:
        >>> history = History()
        >>> history.append([100.0, 3.5] + [0.0] * 13)
        >>> history["best"]
        array([3.5])
    """

    def __init__(self, rows: Sequence[Sequence[float]] = ()) -> None:
        self._rows = [tuple(map(float, row)) for row in rows]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, column: str) -> Vector:
        place = COLUMNS.index(column)
        return np.array([row[place] for row in self._rows])

    def last(self, column: str, count: int) -> Vector:
        """The column's last `count` numbers, without building the whole column."""
        place = COLUMNS.index(column)
        return np.array([row[place] for row in self._rows[-count:]])

    def append(self, row: Sequence[float]) -> None:
        if len(row) != len(COLUMNS):
            raise ValueError(f"row: expected {len(COLUMNS)} numbers, got {len(row)}")
        self._rows.append(tuple(map(float, row)))

    def trim(self, length: int) -> None:
        """Forget rows beyond `length`."""
        del self._rows[length:]

    def table(self) -> Vector:
        """All rows, shape (iterations, columns)."""
        return np.array(self._rows, dtype=np.float64).reshape(-1, len(COLUMNS))

    def columns(self) -> dict[str, Vector]:
        """All columns by name."""
        table = self.table()
        return {name: table[:, place].copy() for place, name in enumerate(COLUMNS)}
