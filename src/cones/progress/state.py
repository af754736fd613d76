"""Where a run stands: what an iteration did, and everything that it replaces."""

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
    """The state after an iteration. A new one replaces it as a whole, so that none is half made.

    Attributes:
        belief: the distribution that the next candidates are drawn from.
        components: what the method's components remember; None before the first step.
        popsize: candidates of the next iteration.
        iteration, evaluations, seconds: so far.
        best_x, best_fun: the best candidate so far; None and inf if there is none.
        fault: the name of a stop reason that the last iteration gave by itself.
        failed_steps: iterations so far whose solver found no step.
        restarts: so far; `began` and `began_evaluations` are the iteration and the evaluations of the last one.
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
    """What an iteration did."""

    belief: Belief
    state: Any
    columns: dict[str, float]
    status: StepStatus = StepStatus.FORMULA
