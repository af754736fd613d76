"""A function of named values, as a function of the vectors that stand for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cones.space.space import Space

__all__ = ["NamedFunction"]


@dataclass(frozen=True)
class NamedFunction:
    """Calls `fun` with the values of a candidate as a dict; if `vectorized`, with a list of dicts."""

    fun: Callable[..., Any]
    space: Space
    vectorized: bool = False

    def __call__(self, x: np.ndarray[Any, Any], *args: Any) -> Any:
        if self.vectorized:
            return self.fun([self.space.decode(row) for row in x], *args)
        return self.fun(self.space.decode(x), *args)
