r"""ES: the gradient itself, ( L^-T a, B ) = ( dl/dmu, dl/dlog-covariance )."""

from __future__ import annotations

from dataclasses import dataclass

from cones.beliefs.belief import Belief, FrameGradient
from cones.steps.step import Direction, Refinement, Situation

__all__ = ["Plain"]


@dataclass(frozen=True)
class Plain(Refinement):
    """No refinement (Salimans et al., Evolution Strategies as a Scalable Alternative, 2017)."""

    def refine(self, belief: Belief, gradient: FrameGradient, situation: Situation) -> Direction:
        return Direction(belief.gradient_from_frame(gradient.mean), gradient.covariance)
