"""The state of a run, and the outcome of an iteration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from cones.beliefs import Belief, StepStatus
from cones.checks import check_integer, check_non_negative, check_vector
from cones.component import Storable
from cones.space.lagrangian import Lagrangian
from cones.types import Vector

__all__ = ["CATOL", "Descent", "Earlier", "Outcome", "State"]

CATOL = 1e-8
COUNTS = (
    "iteration", "evaluations", "failed_steps", "restarts", "began", "began_evaluations", "failed_populations",
    "failed_in_a_row",
)  # fmt: skip


@dataclass(frozen=True)
class Descent(Storable):
    """The descent under way: what lies between two restarts.

    Attributes:
        best: its lowest loss; with constraints, that of its best candidate.
        improved: the iteration after which `best` was found.
        plan: evaluations that adaptive radii plan for: infinite if unknown, None for all that are left.
        limit: evaluations after which it ends in any case.
        violation: the violation of its best candidate.
        at_mean: True if it began at the mean of the one before.
    """

    best: float = math.inf
    improved: int = 0
    plan: float | None = None
    limit: float = math.inf
    violation: float = 0.0
    at_mean: bool = False


@dataclass(frozen=True)
class Earlier(Storable):
    """The descents before the last restart.

    Attributes:
        belief: the final belief of the best one, by the level of its losses; None before the first restart.
        level: that level, the median over its last iterations of the population's mean loss.
        converged: the lowest loss of those that ended by a tolerance; infinite if none did.
        policy: the state of the restart policy.
        search: the last round of a search along the axes; None before the first.
    """

    belief: Belief | None = None
    level: float = math.inf
    converged: float = math.inf
    policy: Any = None
    search: Any = None


@dataclass(frozen=True)
class State(Storable):
    """The state after an iteration. Each iteration replaces it as a whole, so an interrupt leaves no partial update.

    Attributes:
        belief: the distribution of the next candidates.
        components: states of the method's components; None before the first step.
        popsize: candidates in the next iteration.
        iteration, evaluations, seconds: totals so far.
        best_x, best_fun: the best candidate and its loss; None and inf before the first success.
        fault: the name of a stop reason from the last iteration itself; empty if there is none.
        failed_steps: number of iterations whose solver found no step.
        restarts: number of restarts.
        began, began_evaluations: iteration and evaluations at the last restart.
        failed_populations: number of populations without a finite loss.
        failed_in_a_row: the last that many populations had no finite loss.
        descent, earlier: the descent since the last restart, and those before it.
        catol: the largest violation of a constraint that counts as feasible.
        violation: the largest violation of a constraint by the best candidate.
        lagrangian: the merit by which candidates are ranked; None without constraints.
    """

    belief: Belief
    components: Any = None
    popsize: int = 0
    iteration: int = 0
    evaluations: int = 0
    best_x: Vector | None = None
    best_fun: float = math.inf
    seconds: float = 0.0
    fault: str = ""
    failed_steps: int = 0
    restarts: int = 0
    began: int = 0
    began_evaluations: int = 0
    failed_populations: int = 0
    failed_in_a_row: int = 0
    descent: Descent = Descent()
    earlier: Earlier = Earlier()
    catol: float = CATOL
    violation: float = 0.0
    lagrangian: Lagrangian | None = None

    @property
    def feasible(self) -> bool:
        """True if the best candidate is."""
        return self.violation <= self.catol

    def excess(self, violation: Any) -> Any:
        """Violations, 0 where they are within the tolerance."""
        return np.where(violation > self.catol, violation, 0.0)

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Self:
        state = cls(**parts)
        for name in COUNTS:
            check_integer(name, getattr(state, name), 0)
        check_integer("popsize", state.popsize, 2)
        check_integer("began", state.iteration - state.began, 0)
        check_integer("began_evaluations", state.evaluations - state.began_evaluations, 0)
        check_integer("improved", state.descent.improved, 0)
        check_non_negative("catol", state.catol)
        if state.best_x is not None:
            check_vector("best_x", state.best_x, state.belief.dim)
        if state.earlier.belief is not None:
            check_vector("earlier.belief", state.earlier.belief.mean, state.belief.dim)
        return state


class Outcome(NamedTuple):
    """The outcome of an iteration: the new belief, component states, history columns, and the step's status."""

    belief: Belief
    state: Any
    columns: dict[str, float]
    status: StepStatus = StepStatus.FORMULA
