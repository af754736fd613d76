"""The interface of a restart policy: a descent that has ended in, the next descent out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cones.checks import check_integer
from cones.component import Component, component_from
from cones.errors import InputError

__all__ = ["DescentEnd", "NextDescent", "Restarts", "restarts_from"]


class DescentEnd(NamedTuple):
    """A descent that has ended.

    Attributes:
        number: its number; 0 for the first.
        first_popsize: popsize of the first descent.
        popsize, evaluations: of this descent.
        left: evaluations that are left of the run's budget; infinite if unknown.
        share_left: the share of the budget that is left, from 0 to 1; of all budgets the smallest.
        searchable: True if a search along the axes is possible; see `cones.restarts.axes`.
        found: True if this was such a search, and it has found a better point.
        level: the median of the mean losses of its last ten iterations; infinite if none of them is finite.
    """

    number: int
    first_popsize: int
    popsize: int
    evaluations: int
    left: float = math.inf
    share_left: float = 1.0
    searchable: bool = False
    found: bool = False
    level: float = math.inf


class NextDescent(NamedTuple):
    """The descent that follows.

    Attributes:
        popsize: candidates per iteration.
        factor: factor of the first descent's standard deviations, or with at_mean of those that the last one has ended
            with.
        elsewhere: False: start at x0. True: start at a random point; see `cones.restarts.start`.
        plan: evaluations that adaptive radii plan for: infinite if unknown, None for all that are left.
        limit: evaluations after which the descent ends in any case.
        along_axes: True: no descent, but a search along the axes through the best candidate. Its populations have
            sizes of their own.
        at_found: True: start at the point that this search has found, as narrow as it is known.
        at_mean: True: start at the mean of the descent that has ended, if it is a Gaussian.
    """

    popsize: int
    factor: float = 1.0
    elsewhere: bool = False
    plan: float | None = None
    limit: float = math.inf
    along_axes: bool = False
    at_found: bool = False
    at_mean: bool = False


class Restarts(Component, ABC):
    """Chooses the next descent. Holds settings only; its state is passed in and returned, None at the first end."""

    kind: ClassVar[str] = "restarts"

    @abstractmethod
    def next(self, state: Any, end: DescentEnd, rng: np.random.Generator) -> tuple[NextDescent | None, Any]:
        """The next descent, None to end the run, and the new state. `rng` depends on the seed and `end.number`."""

    def first_plan(self) -> float | None:
        """`NextDescent.plan` of the first descent."""
        return None


def restarts_from(value: Any) -> Restarts | None:
    """The policy for a number of restarts, "auto", or what `component_from` takes; None for 0."""
    if isinstance(value, str) and value == "auto":
        value = "bipop"
    if isinstance(value, (str, dict, Restarts, type)):
        return component_from("restarts", value)  # type: ignore[no-any-return]
    try:
        number = check_integer("restarts", value, 0)
    except InputError:
        if isinstance(value, (int, float, np.number)):
            raise
        raise InputError(
            f"restarts: expected a number of restarts, 'auto', or a policy such as 'bipop', got {value!r:.80}"
        ) from None
    return component_from("restarts", {"name": "growing", "limit": number}) if number else None
