"""Growing populations (IPOP): each restart has twice the candidates of the last descent.

Reference: Auger & Hansen, A restart CMA evolution strategy with increasing population size, CEC 2005.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cones.checks import check_integer, store
from cones.component import setting
from cones.restarts.policy import DescentEnd, NextDescent, Restarts

__all__ = ["Growing"]


@dataclass(frozen=True)
class Growing(Restarts):
    """Starts anew from the first belief with twice the candidates."""

    name = "growing"

    limit: int = setting(9, "Largest number of restarts.")

    def __post_init__(self) -> None:
        store(self, limit=check_integer("restarts.limit", self.limit, 0))

    def first_plan(self) -> float | None:
        return self._plan(0)

    def next(self, state: None, end: DescentEnd, rng: np.random.Generator) -> tuple[NextDescent | None, None]:
        if end.number >= self.limit:
            return None, None
        return NextDescent(2 * end.popsize, plan=self._plan(end.number + 1)), None

    def _plan(self, number: int) -> float | None:
        """How many evaluations each descent will take is unknown; the last one has all that are left."""
        return math.inf if number < self.limit else None
