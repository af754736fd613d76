"""The interface of a step rule: an estimate in, a step of ascent out. The optimizer descends along it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

from cones.beliefs import Belief, Step
from cones.component import Component
from cones.estimators import Estimate

__all__ = ["IterationInfo", "StepRule"]


class IterationInfo(NamedTuple):
    """What a step rule may want to know of the iteration besides its estimate.

    Attributes:
        spent: evaluations before this iteration, since the last restart.
        budget: evaluations that the run may spend; infinite if that is not known.
    """

    spent: int = 0
    budget: float = math.inf


class StepRule(Component, ABC):
    """Proposes a step. It is settings; what it remembers is a value of its own, None before the first iteration."""

    kind: ClassVar[str] = "step"

    @abstractmethod
    def propose(self, state: Any, belief: Any, estimate: Estimate, info: IterationInfo) -> tuple[Step[Belief], Any]:
        """The step of ascent for this estimate at this belief, and what to remember."""
