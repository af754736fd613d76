r"""ES: the gradient itself, ( L^-T a, B ) = ( dl/dmu, dl/dlog-covariance ); for other families dl/deta."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cones.beliefs import Step
from cones.estimators import Estimate
from cones.steps.rule import IterationInfo, StepRule

__all__ = ["Plain"]


@dataclass(frozen=True)
class Plain(StepRule):
    """The plain gradient (Salimans et al., Evolution Strategies as a Scalable Alternative, 2017)."""

    name = "plain"

    def propose(self, state: None, belief: Any, estimate: Estimate, info: IterationInfo) -> tuple[Step[Any], None]:
        gradient = estimate.gradient
        return Step(shift=belief.gradient_from_frame(gradient.mean), log_ratio=gradient.covariance), None
