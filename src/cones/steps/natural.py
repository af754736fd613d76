r"""NES: the natural gradient F^-1 grad, ( L a, 2 B )."""

from __future__ import annotations

from dataclasses import dataclass

from cones.beliefs.belief import Belief, FrameGradient
from cones.steps.step import Direction, Refinement, Situation

__all__ = ["Natural"]


@dataclass(frozen=True)
class Natural(Refinement):
    """The exact inverse Fisher information (Wierstra et al., Natural Evolution Strategies, 2014)."""

    def refine(self, belief: Belief, gradient: FrameGradient, situation: Situation) -> Direction:
        return Direction(
            belief.from_frame(gradient.mean),
            gradient.covariance.map(lambda values: 2.0 * values),
        )
