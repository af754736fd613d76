"""Functions of named values, as functions of the vectors that stand for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import NonlinearConstraint

from cones.errors import InputError
from cones.space.space import Space

__all__ = ["NamedFunction", "named_constraints"]


@dataclass(frozen=True)
class NamedFunction:
    """Calls `fun` with the values of a candidate as a dict; if `vectorized`, with a list of dicts."""

    fun: Callable[..., Any]
    space: Space
    vectorized: bool = False

    def __call__(self, x: np.ndarray[Any, Any], *args: Any, **further: Any) -> Any:
        if self.vectorized:
            return self.fun([self.space.decode(row) for row in x], *args, **further)
        return self.fun(self.space.decode(x), *args, **further)


def named_constraints(constraints: Any, space: Space, vectorized: bool) -> Any:
    """SciPy's constraints whose functions take values by name. Coordinates have none, so linear ones are refused."""
    if constraints is None:
        return None
    if not isinstance(constraints, (list, tuple)):
        return _named(constraints, space, vectorized)
    return [_named(item, space, vectorized) for item in constraints]


def _named(item: Any, space: Space, vectorized: bool) -> Any:
    if isinstance(item, Mapping) and callable(item.get("fun")):
        return {**item, "fun": NamedFunction(item["fun"], space, vectorized)}
    if isinstance(item, NonlinearConstraint) and callable(item.fun):
        return NonlinearConstraint(NamedFunction(item.fun, space, vectorized), item.lb, item.ub)
    if hasattr(item, "A"):
        raise InputError("constraints: expected functions of the values in a space, got a LinearConstraint")
    return item
