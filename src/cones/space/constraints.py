"""Constraints as SciPy has them, and as rows of numbers that are at most 0 where they hold.

    LinearConstraint(A, lb, ub), NonlinearConstraint(fun, lb, ub)     lb <= A x <= ub,  lb <= fun(x) <= ub
    {"type": "ineq", "fun": fun}, {"type": "eq", "fun": fun}          fun(x) >= 0,  fun(x) = 0

Each finite side is one number per row: lb - v, or v - ub. An equality has both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

from cones.checks import check_array, check_finite
from cones.errors import InputError
from cones.types import Matrix, Vector

__all__ = ["Constraint", "Constraints", "constraints_from"]

EXPECTED = "a LinearConstraint, a NonlinearConstraint, a dict with type and fun, or a list of these"


@dataclass(frozen=True)
class Constraint:
    """lower <= fun(x, *args) <= upper, elementwise.

    Args:
        name: what errors call it.
        fun: takes a candidate; if `vectorized`, an array with one candidate per row.
    """

    name: str
    fun: Callable[..., Any]
    args: tuple[Any, ...]
    lower: Vector
    upper: Vector
    vectorized: bool

    @property
    def count(self) -> int:
        """The number of finite sides."""
        return int(np.isfinite(self.lower).sum() + np.isfinite(self.upper).sum())

    def sides(self, candidates: Matrix) -> Matrix:
        """One row per candidate, at most 0 where the constraint holds; NaN where the function is."""
        if self.vectorized:
            values = self.values(candidates, len(candidates))
        else:
            values = np.concatenate([self.values(row.copy(), 1) for row in candidates])
        low, high = np.isfinite(self.lower), np.isfinite(self.upper)
        return np.concatenate([(self.lower - values)[:, low], (values - self.upper)[:, high]], axis=1)

    def values(self, argument: Matrix, rows: int) -> Matrix:
        """The function's values, shape (rows, number of values)."""
        try:
            found = check_array(f"{self.name}: value of fun", self.fun(argument, *self.args))
        except (Exception, SystemExit) as error:
            error.add_note(f"cones: raised by {self.name}")
            raise
        if self.lower.size and found.size != rows * self.lower.size:
            expected = f"{self.lower.size} numbers" + (f" for each of {rows} rows" if self.vectorized else "")
            raise InputError(f"{self.name}: expected fun to return {expected}, got shape {found.shape}")
        if found.size % rows or (self.vectorized and found.shape[:1] != (rows,)):
            raise InputError(f"{self.name}: expected fun to return one row per candidate, got shape {found.shape}")
        return found.reshape(rows, -1)


@dataclass(frozen=True)
class Constraints:
    """All constraints of a problem."""

    parts: tuple[Constraint, ...]

    @property
    def count(self) -> int:
        """Numbers per candidate."""
        return sum(part.count for part in self.parts)

    def sides(self, candidates: Matrix) -> Matrix:
        """One row per candidate, at most 0 where all constraints hold."""
        return np.concatenate([part.sides(candidates) for part in self.parts], axis=1)


@dataclass(frozen=True)
class _Product:
    """A x, for a candidate or for rows; a class so that it can be pickled."""

    matrix: Matrix

    def __call__(self, x: Matrix) -> Matrix:
        return np.asarray(x @ self.matrix.T)


def constraints_from(constraints: Any, x0: Vector, vectorized: bool = False) -> Constraints | None:
    """The constraints for what SciPy accepts; None if there are none.

    Functions are called once at x0, to learn how many numbers they return.
    """
    if constraints is None:
        return None
    several = isinstance(constraints, (list, tuple))
    parts = []
    for index, item in enumerate(constraints if several else [constraints]):
        name = f"constraints[{index}]" if several else "constraints"
        part = _constraint(name, item, x0, vectorized)
        if part.count:
            parts.append(part)
    return Constraints(tuple(parts)) if parts else None


def _constraint(name: str, item: Any, x0: Vector, vectorized: bool) -> Constraint:
    if isinstance(item, LinearConstraint):
        matrix = item.A.toarray() if hasattr(item.A, "toarray") else item.A
        matrix = np.atleast_2d(check_array(f"{name}: A", matrix))
        if matrix.shape[1] != x0.size:
            raise InputError(f"{name}: expected A with {x0.size} columns, one per coordinate, got shape {matrix.shape}")
        check_finite(f"{name}: A", matrix)
        return _bounded(name, _Product(matrix), (), item.lb, item.ub, len(matrix), True)
    if isinstance(item, NonlinearConstraint):
        fun, args, low, high = item.fun, (), item.lb, item.ub
    elif isinstance(item, Mapping):
        fun, args, low, high = _of_mapping(name, item)
    else:
        hint = "; pass it as bounds" if isinstance(item, Bounds) else ""
        raise InputError(f"{name}: expected {EXPECTED}, got {type(item).__name__} {item!r:.60}{hint}")
    if not callable(fun):
        raise InputError(f"{name}: expected fun to be callable, got {type(fun).__name__}")
    unknown = Constraint(name, fun, args, np.empty(0), np.empty(0), vectorized)
    size = unknown.values(x0[None, :].copy() if vectorized else x0.copy(), 1).shape[1]
    return _bounded(name, fun, args, low, high, size, vectorized)


def _of_mapping(name: str, item: Mapping[str, Any]) -> tuple[Any, tuple[Any, ...], float, float]:
    unknown = item.keys() - {"type", "fun", "args", "jac", "hess"}
    if unknown or not {"type", "fun"} <= item.keys():
        raise InputError(f"{name}: expected the keys type, fun and args, got {', '.join(map(str, item))}")
    kind = str(item["type"]).lower()
    if kind not in ("eq", "ineq"):
        raise InputError(f"{name}: expected type 'eq' or 'ineq', got {item['type']!r:.60}")
    args = item.get("args", ())
    return item["fun"], args if isinstance(args, tuple) else (args,), 0.0, 0.0 if kind == "eq" else np.inf


def _bounded(
    name: str, fun: Callable[..., Any], args: tuple[Any, ...], low: Any, high: Any, size: int, vectorized: bool
) -> Constraint:
    sides = []
    for word, side in (("lb", low), ("ub", high)):
        array = check_array(f"{name}: {word}", side)
        if array.shape not in ((), (1,), (size,)):
            raise InputError(f"{name}: expected {word} to fit {size} values, got shape {array.shape}")
        sides.append(np.broadcast_to(array, (size,)).copy())
    lower, upper = sides
    bad = ~(lower <= upper) | (lower == np.inf) | (upper == -np.inf)
    if bad.any():
        index = int(bad.argmax())
        raise InputError(f"{name}: expected lb <= ub, got {lower[index]} and {upper[index]} at index {index}")
    return Constraint(name, fun, args, lower, upper, vectorized)
