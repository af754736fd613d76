"""The step unchanged: the belief moves to the solution of the step problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cones.beliefs import Step
from cones.kernels.spans import elementwise
from cones.optimizers.optimizer import Optimizer

__all__ = ["Direct"]


@dataclass(frozen=True)
class Direct(Optimizer[None]):
    """Takes the negative step, without learning rate or state.

    For step rules that choose the length of their steps, such as `cones.Balls`.
    """

    name = "direct"

    def start(self, step: Step[Any]) -> None:
        return None

    def update(self, state: None, step: Step[Any]) -> tuple[Step[Any], None]:
        log_ratio = None if step.log_ratio is None else step.log_ratio.map(np.negative)
        return step._replace(shift=elementwise(np.negative, step.shift), log_ratio=log_ratio), None
