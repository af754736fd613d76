"""The 51 targets, and a function that notes when each of them is first reached.

target_j = f_opt + 10^(2 - j/5),   j = 0..50

With constraints g(x) <= 0 the value is COCO's indicator, f_opt + max(f - f_opt, 0) + sum_i max(g_i, 0).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["EXPONENTS", "TARGETS", "Counted", "Finished"]

EXPONENTS = tuple(round(2 - j / 5, 1) for j in range(51))
TARGETS = tuple(10.0**e for e in EXPONENTS)


class Finished(Exception):  # noqa: N818 - not an error
    """The last target is reached or the budget is spent. It leaves the method through all its loops."""


class Counted:
    """A function that counts its evaluations and notes those at which each target was first reached.

    Args:
        function: takes a vector and returns a number.
        optimum: the least value of the function.
        budget: evaluations after which `Finished` is raised.
        constraints: takes a vector and returns numbers, at most 0 where it is feasible. Their calls are not counted.
    """

    def __init__(
        self,
        function: Callable[[Any], float],
        optimum: float,
        budget: int,
        constraints: Callable[[Any], Any] | None = None,
    ) -> None:
        self.function = function
        self.constraints = constraints
        self.optimum = optimum
        self.budget = budget
        self.evaluations = 0
        self.best = float("inf")  # precision: the least f - f_opt
        self.hits: list[int | None] = [None] * len(TARGETS)
        self._next = 0

    @property
    def left(self) -> int:
        """Evaluations that are left."""
        return self.budget - self.evaluations

    def __call__(self, x: Any) -> float:
        if self.evaluations >= self.budget:
            raise Finished
        value = float(self.function(x))
        self.evaluations += 1
        precision = value - self.optimum
        if self.constraints is not None:
            precision = max(precision, 0.0) + float(np.maximum(self.constraints(x), 0.0).sum())
        if precision < self.best:
            self.best = precision
            while self._next < len(TARGETS) and precision <= TARGETS[self._next]:
                self.hits[self._next] = self.evaluations
                self._next += 1
            if self._next == len(TARGETS):
                raise Finished
        return value
