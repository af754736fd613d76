"""The state of a run, and the outcome of an iteration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from cones.beliefs import Belief, StepStatus
from cones.component import Storable
from cones.types import Vector

__all__ = ["Outcome", "State"]


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


class Outcome(NamedTuple):
    """The outcome of an iteration: the new belief, component states, history columns, and the step's status."""

    belief: Belief
    state: Any
    columns: dict[str, float]
    status: StepStatus = StepStatus.FORMULA
