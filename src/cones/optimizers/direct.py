"""The step as the refinement gives it: the belief moves to the point of the ball."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cones.optimizers.optimizer import Change, Optimizer
from cones.steps.step import Direction

__all__ = ["Direct"]


@dataclass(frozen=True)
class Direct(Optimizer[None]):
    """No learning rate and no memory: change = -direction.

    For refinements whose length means something, such as `cones.Balls`.
    """

    def start(self, direction: Direction) -> None:
        return None

    def step(self, memory: None, direction: Direction) -> tuple[Change, None]:
        shift = np.negative(direction.mean, out=direction.mean)
        return Change(shift, direction.log_covariance.map(np.negative)), None
