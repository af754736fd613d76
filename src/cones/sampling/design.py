r"""Designs: how a population is sampled.

A design chooses a `Plan` for each iteration: the number of rows of noise, whether each row gives a mirrored pair of
candidates, and whether the noise is transformed before the belief turns it into candidates. Estimators may change the
plan; see `cones.estimators.Estimator.plan`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from cones.checks import check_integer
from cones.component import Component, Storable
from cones.errors import InputError
from cones.types import Matrix, Vector

__all__ = ["PRODUCT_ROWS", "Antithetic", "Auto", "AutoState", "Design", "Independent", "Plan"]

# "auto" draws pairs at least once in this many iterations, because only pairs show whether pairs help.
PAIRS_AT_LEAST_EVERY = 10
# Rows of noise per product of matrices.
PRODUCT_ROWS = 64
ODD_SHARE_RATE = 0.3


@dataclass(frozen=True)
class Plan(Storable):
    """How the candidates of one iteration come from noise.

    Attributes:
        popsize: number of candidates.
        mirrored: True if candidates 2 i and 2 i + 1 come from z_i and -z_i.
        transform: maps rows of standard normals to the noise that the belief uses; None for the identity. A dataclass
            with `__call__(noise) -> noise`, so that it can be sent to workers and stored.
        block: number of rows that are transformed together. The transform may mix the rows of a block.
    """

    popsize: int
    mirrored: bool = False
    transform: Callable[[Matrix], Matrix] | None = None
    block: int = PRODUCT_ROWS

    @property
    def rows(self) -> int:
        """Number of rows of noise."""
        return self.popsize // self.per_row

    @property
    def per_row(self) -> int:
        """Number of candidates per row; they are consecutive in the population."""
        return 2 if self.mirrored else 1

    def fold(self, utilities: Vector) -> tuple[Vector, Vector]:
        """The weight of each row of noise in sums of odd functions of the noise, and in sums of even ones."""
        if not self.mirrored:
            return utilities, utilities
        plus, minus = utilities[::2], utilities[1::2]
        return plus - minus, plus + minus


class Design(Component, ABC):
    """Chooses how a population is sampled."""

    kind: ClassVar[str] = "design"

    def check(self, popsize: int) -> None:
        """Raise if the design cannot draw `popsize` candidates."""
        check_integer("popsize", popsize, 2)

    @abstractmethod
    def plan(self, state: Any, popsize: int, age: int) -> Plan:
        """The plan of an iteration. `age` is the number of iterations before it; `state` is None in the first."""

    def update(self, state: Any, plan: Plan, utilities: Vector) -> Any:
        """The state after an iteration."""
        return state


@dataclass(frozen=True)
class Independent(Design):
    """Candidate i is drawn from z_i."""

    name = "independent"

    def plan(self, state: Any, popsize: int, age: int) -> Plan:
        return Plan(popsize)


@dataclass(frozen=True)
class Antithetic(Design):
    """Pairs: candidates 2 i and 2 i + 1 are drawn from z_i and -z_i."""

    name = "antithetic"

    def check(self, popsize: int) -> None:
        _check_even(popsize)

    def plan(self, state: Any, popsize: int, age: int) -> Plan:
        return Plan(popsize, mirrored=True)


@dataclass(frozen=True)
class AutoState(Storable):
    """The share of the utilities' variance that is odd in the noise, averaged over iterations with pairs."""

    odd_share: float = 0.0


@dataclass(frozen=True)
class Auto(Design):
    """Pairs or independent candidates, whichever gives the better estimate of the mean's gradient.

    Pairs are better if less than half of the utilities' variance is odd in the noise.
    """

    name = "auto"

    def check(self, popsize: int) -> None:
        _check_even(popsize)

    def plan(self, state: AutoState | None, popsize: int, age: int) -> Plan:
        odd_share = 0.0 if state is None else state.odd_share
        return Plan(popsize, mirrored=odd_share < 0.5 or age % PAIRS_AT_LEAST_EVERY == 0)

    def update(self, state: AutoState | None, plan: Plan, utilities: Vector) -> AutoState:
        state = state or AutoState()
        if not plan.mirrored:
            return state
        odd, even = (float(part @ part) for part in plan.fold(utilities))
        if not 0.0 < odd + even < math.inf:  # all tied, or beyond the range of floats
            return state
        return AutoState(state.odd_share + ODD_SHARE_RATE * (odd / (odd + even) - state.odd_share))


def _check_even(popsize: int) -> None:
    if check_integer("popsize", popsize, 2) % 2:
        raise InputError(
            f"popsize: expected an even number of at least 2 for antithetic pairs, got {popsize}; "
            "antithetic=False (--independent) accepts odd numbers"
        )
