"""The history of a run: one row of named numbers per iteration."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from cones.checks import check_array, check_shape
from cones.component import Storable, suggestion
from cones.errors import InputError
from cones.types import Matrix, Vector

__all__ = ["COLUMNS", "History"]

# Columns of every history; NaN if a method does not have the number. Components add further columns.
COLUMNS = (
    "evaluations",  # total so far
    "best",  # lowest loss so far
    "mean_loss",  # mean of the population's finite losses
    "loss_deviation",  # standard deviation of the population's finite losses
    "step",  # length of the mean's step
    "spread",  # square root of the belief's mean variance per coordinate, after the step
    "kl",  # KL(new belief || old belief)
    "multiplier",  # Lagrange multiplier of the convex step
    "gap",  # duality gap of the convex step
    "mean_radius",  # radius of the ball of the mean
    "scale_radius",  # radius of the ball of the scale
    "shape_radius",  # radius of the ball of the shape
    "path_length",  # length of the path of the mean's recent directions; above 1 if they agree
    "step_status",  # the code of a `StepStatus`
    "failures",  # NaN losses in the population
    "popsize",  # candidates of the iteration
    "restart",  # number of restarts before the iteration
    "seconds",  # duration of the run so far
)


# Names that columns of components cannot have: the strategy's own, and those of results.
RESERVED = frozenset(
    {*COLUMNS[:7], "multiplier", "gap", "step_status", "failures", "popsize", "restart", "seconds"}
    | {"x", "fun", "nit", "nfev", "belief", "violation", "feasible", "ended", "saved"}
    | {"replicates", "reliability"}
)


class History(Storable):
    """One row per iteration, read by column.

    Example:
        >>> history = History()
        >>> history.append({"best": 3.5, "trust": 0.9})
        >>> history["best"], history["trust"]
        (array([3.5]), array([0.9]))
    """

    def __init__(self, table: Matrix | None = None, names: Sequence[str] = COLUMNS) -> None:
        self._columns: dict[str, list[float]] = {name: [] for name in (*COLUMNS, *names)}
        self._length = 0
        self._noted: dict[str, float] = {}
        if table is not None:
            rows = np.asarray(table, dtype=np.float64).reshape(-1, len(names))
            self._length = len(rows)
            for name in self._columns:
                missing = [math.nan] * self._length
                self._columns[name] = rows[:, list(names).index(name)].tolist() if name in names else missing

    def __len__(self) -> int:
        return self._length

    def __contains__(self, column: str) -> bool:
        return column in self._columns

    def __getitem__(self, column: str) -> Vector:
        return np.array(self._of(column), dtype=np.float64)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(self._columns)

    def last(self, column: str, count: int) -> Vector:
        """The column's last `count` numbers, without building the whole column."""
        return np.array(self._of(column)[-count:], dtype=np.float64)

    def latest(self, column: str) -> float:
        """The column's last number; NaN if the history is empty."""
        values = self._of(column)
        return values[-1] if values else math.nan

    def note(self, row: Mapping[str, float]) -> None:
        """Keep numbers for the row that is appended next, instead of those noted before."""
        self._noted = {name: float(value) for name, value in row.items()}

    def append(self, row: Mapping[str, float]) -> None:
        """Add a row. Missing columns become NaN; a new column is NaN in all earlier rows."""
        columns = self._columns
        numbers = self._noted | {name: float(value) for name, value in row.items()}  # before any column grows
        for name in numbers:
            if name not in columns:
                columns[name] = [math.nan] * self._length
        for name, values in columns.items():
            values.append(numbers.get(name, math.nan))
        self._length += 1
        self._noted = {}

    def amend(self, row: Mapping[str, float]) -> None:
        """Set numbers of the last row; a new column is NaN in all others."""
        for name, value in row.items():
            self._columns.setdefault(name, [math.nan] * self._length)[-1] = float(value)

    def trim(self, length: int) -> None:
        """Delete the rows from `length` on."""
        if length < self._length:
            for values in self._columns.values():
                del values[length:]
            self._length = length

    def table(self) -> Matrix:
        """All rows, shape (iterations, columns)."""
        return np.array(list(self._columns.values()), dtype=np.float64).T.reshape(-1, len(self._columns))

    def columns(self) -> dict[str, Vector]:
        """All columns by name."""
        return {name: np.array(values, dtype=np.float64) for name, values in self._columns.items()}

    def stored(self) -> dict[str, Any]:
        return {"table": self.table(), "names": list(self._columns)}

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Self:
        table, names = check_array("history", parts["table"]), parts["names"]
        if not isinstance(names, list) or not all(type(name) is str for name in names) or len({*names}) < len(names):
            raise InputError(f"history: expected names of columns, got {names!r:.80}")
        check_shape("history", table, (len(table) if table.ndim else 0, len(names)))
        return cls(table, names)

    def _of(self, column: str) -> list[float]:
        if column not in self._columns:
            raise KeyError(f"no column {column!r} in the history{suggestion(column, self._columns)}")
        return self._columns[column]
