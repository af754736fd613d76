"""From the start, then narrower from there, then anew: for noisy losses, where one spread does not fit a whole run.

A wide spread finds the way to a good region. In it the wide spread costs: most candidates are worse than the mean, and
what a few of them say about the spread is noise, so that it does not fall by itself. So where a descent from x0 ends, a
second one goes on from its mean with a part of its spread. Where that one ends, too, another descent begins at x0 with
the first spread, as another try. It is followed by a narrower one if it ends lower than all others from x0 before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cones.checks import check_fraction, check_integer, store
from cones.component import Storable, setting
from cones.restarts.policy import DescentEnd, NextDescent, Restarts

__all__ = ["Refining", "RefiningState"]


@dataclass(frozen=True)
class RefiningState(Storable):
    """The lowest level at which a descent from x0 has ended, and whether the present one is a narrower one."""

    lowest: float = math.inf
    is_narrow: bool = False


@dataclass(frozen=True)
class Refining(Restarts):
    """From x0 with the first spread, then narrower from the mean, then anew."""

    name = "refining"

    limit: int | None = setting(None, "Largest number of restarts; None: as many as the budget allows.")
    factor: float = setting(0.25, "The narrower spread, relative to that where the descent before has ended.")

    def __post_init__(self) -> None:
        if self.limit is not None:
            store(self, limit=check_integer("restarts.limit", self.limit, 0))
        store(self, factor=check_fraction("restarts.factor", self.factor))

    def next(
        self, state: RefiningState | None, end: DescentEnd, rng: np.random.Generator
    ) -> tuple[NextDescent | None, RefiningState]:
        state = state or RefiningState()
        if self.limit is not None and end.number >= self.limit:
            return None, state
        if state.is_narrow or not end.level < state.lowest:
            return NextDescent(end.first_popsize), RefiningState(state.lowest)
        return NextDescent(end.first_popsize, self.factor, at_mean=True), RefiningState(end.level, is_narrow=True)
