r"""NES: the natural gradient F^-1 grad, ( L a, 2 B )."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cones.beliefs import Gaussian, Step
from cones.estimators import Estimate
from cones.steps.rule import IterationInfo, StepRule

__all__ = ["Natural"]


@dataclass(frozen=True)
class Natural(StepRule):
    """The natural gradient with the exact Fisher information (Wierstra et al., Natural Evolution Strategies, 2014)."""

    name = "natural"

    def propose(self, state: None, belief: Gaussian, estimate: Estimate, info: IterationInfo) -> tuple[Step[Any], None]:
        gradient = estimate.gradient
        return Step(
            shift=belief.from_frame(gradient.mean), log_ratio=gradient.covariance.map(lambda values: 2.0 * values)
        ), None
