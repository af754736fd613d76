r"""Two populations (BIPOP): large ones that grow, and small ones that search closer.

With lambda the first descent's popsize, g the growth, k the number of large restarts so far, and U, U' uniform in
[0, 1]:

    large    popsize g^(k+1) lambda                          sigma0
    small    popsize lambda max(1, g^k / 2)^(U'^2)           sigma0 10^(-2 U)

A restart belongs to the regime with fewer evaluations so far; those of the first descent count as small. A small
descent ends at half of the evaluations of the last large one. A large descent takes at least as many evaluations as
the last large one. If fewer are left, a small one takes its place.

Hansen's growth is 2. With 4, large populations are reached while there is a budget for them.

Before all that comes a search along the axes, if the loss is separable (`cones.restarts.axes`): rounds of it, each with
at most a quarter of the evaluations that are left, and descents from what they find. They count as small.

Reference: Hansen, Benchmarking a BI-population CMA-ES on the BBOB-2009 function testbed, GECCO 2009.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cones.checks import check_bool, check_fraction, check_integer, check_positive, store
from cones.component import Storable, setting
from cones.errors import InputError
from cones.restarts.policy import DescentEnd, NextDescent, Restarts

__all__ = ["Bipop", "BipopState"]

# A restart for which fewer populations than this are left would find nothing.
LEAST_POPULATIONS = 20
# Of the evaluations that are left, for a search along the axes.
SHARE_OF_SEARCH = 0.25


@dataclass(frozen=True)
class BipopState(Storable):
    """Evaluations of both regimes, those of the last large descent, the number of large restarts, and the regime.

    `at_found` is True in a descent from what a search along the axes has found.
    """

    small: int = 0
    large: int = 0
    last_large: int = 0
    grown: int = 0
    is_large: bool = False
    at_found: bool = False


@dataclass(frozen=True)
class Bipop(Restarts):
    """Large and small populations in turn, each from a random start, until the budget is spent."""

    name = "bipop"

    limit: int | None = setting(None, "Largest number of restarts; None: as many as the budget allows.")
    share: float = setting(0.0, "Share of the budget that must be left after the first descent.")
    growth: float = setting(4.0, "Factor from one large population to the next.")
    axes: bool = setting(True, "Search along the axes after the first descent if the loss is separable.")

    def __post_init__(self) -> None:
        if self.limit is not None:
            store(self, limit=check_integer("restarts.limit", self.limit, 0))
        store(self, share=check_fraction("restarts.share", self.share))
        if check_positive("restarts.growth", self.growth) <= 1.0:
            raise InputError(f"restarts.growth: expected a number above 1, got {self.growth}")
        store(self, axes=check_bool("restarts.axes", self.axes))

    def next(
        self, state: BipopState | None, end: DescentEnd, rng: np.random.Generator
    ) -> tuple[NextDescent | None, BipopState]:
        state = _with(state or BipopState(), end)
        if self.limit is not None and end.number >= self.limit:
            return None, state
        if (end.number == 0 and end.share_left < self.share) or end.left < LEAST_POPULATIONS * end.first_popsize:
            return None, state
        if self.axes and end.searchable and (end.number == 0 or state.at_found):
            search = NextDescent(end.first_popsize, along_axes=True, limit=SHARE_OF_SEARCH * end.left)
            return search, replace(state, at_found=False)
        if end.found:
            return NextDescent(end.first_popsize, at_found=True), replace(state, at_found=True)
        popsize = int(self.growth ** (state.grown + 1) * end.first_popsize)
        popsize -= (popsize - end.first_popsize) % 2  # pairs need an even number
        if state.large <= state.small and max(state.last_large, LEAST_POPULATIONS * popsize) <= end.left:
            plan = self.growth * state.last_large  # a guess: more candidates, as many iterations
            return NextDescent(popsize, elsewhere=True, plan=plan), replace(state, is_large=True, grown=state.grown + 1)
        closer, fewer = rng.random(2)
        ratio = max(1.0, 0.5 * self.growth**state.grown)
        popsize = int(end.first_popsize * ratio ** (fewer * fewer))
        popsize -= (popsize - end.first_popsize) % 2
        limit = 0.5 * state.last_large
        return NextDescent(popsize, 10.0 ** (-2.0 * closer), True, limit, limit), replace(state, is_large=False)


def _with(state: BipopState, end: DescentEnd) -> BipopState:
    """The state after the evaluations of a descent."""
    if state.is_large:
        return replace(state, large=state.large + end.evaluations, last_large=end.evaluations)
    last = end.evaluations if end.number == 0 else state.last_large
    return replace(state, small=state.small + end.evaluations, last_large=last)
