"""The interface of a step rule: an estimate in, an ascent step out. The optimizer descends along it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

from cones.beliefs import Belief, Step
from cones.component import Component
from cones.estimators import Estimate
from cones.space.bounds import Box

__all__ = ["IterationInfo", "StepRule"]


class IterationInfo(NamedTuple):
    """Information about the iteration for step rules.

    Attributes:
        spent: evaluations since the last restart, before this iteration.
        budget: total evaluations that the run, or this descent of it, plans for; infinite if unknown.
        box: the bounds of the candidates; None without bounds.
    """

    spent: int = 0
    budget: float = math.inf
    box: Box | None = None


class StepRule(Component, ABC):
    """Proposes a step. Holds settings only; its state is passed in and returned, None before the first iteration.

    Attributes:
        beliefs: the beliefs that it works with.
    """

    kind: ClassVar[str] = "step"
    beliefs: ClassVar[tuple[type[Belief], ...]] = (Belief,)

    @abstractmethod
    def propose(self, state: Any, belief: Any, estimate: Estimate, info: IterationInfo) -> tuple[Step[Belief], Any]:
        """The ascent step for this estimate and belief, and the new state."""
