r"""NES: the natural gradient F^-1 grad, ( L a, 2 B ); for other families Cov(x)^-1 dl/deta = dl/dmean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cones.beliefs import Step
from cones.estimators import Estimate
from cones.steps.rule import IterationInfo, StepRule

__all__ = ["Natural"]


@dataclass(frozen=True)
class Natural(StepRule):
    """The natural gradient with the exact Fisher information (Wierstra et al., Natural Evolution Strategies, 2014)."""

    name = "natural"

    def propose(self, state: None, belief: Any, estimate: Estimate, info: IterationInfo) -> tuple[Step[Any], None]:
        mean, covariance = estimate.gradient.mean, estimate.gradient.covariance
        log_ratio = None if covariance is None else covariance.map(lambda values: 2.0 * values)
        return Step(shift=belief.from_frame(mean), log_ratio=log_ratio), None
