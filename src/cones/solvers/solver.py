"""The interface of a solver: a gradient and a ball in, the step and its certificate out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from cones.beliefs import Step, StepStatus
from cones.component import Component
from cones.divergences import Ball

__all__ = ["Solver", "unmoved"]


class Solver(Component, ABC):
    """Solves the step problem in the frame of a belief."""

    kind: ClassVar[str] = "solver"

    @abstractmethod
    def solve(self, gradient: Any, ball: Ball) -> Step[Any]:
        """The steepest ascent step inside the ball. A failure of the solver is a status, not an exception.

        The caller turns NumPy's floating-point warnings off.
        """


def unmoved(gradient: Any, status: StepStatus) -> Step[Any]:
    """The zero step, with its reason as the status."""
    return Step(
        shift=np.zeros_like(gradient.mean),
        log_ratio=None if gradient.covariance is None else gradient.covariance.map(np.zeros_like),
        status=status,
        divergence=0.0,
        multiplier=0.0,
        objective=0.0,
        gap=np.inf if status is StepStatus.FAILED else 0.0,
    )
