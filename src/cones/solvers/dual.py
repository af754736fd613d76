"""The exact solver: one scalar equation for the multiplier of the ball."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from cones.beliefs import Step, StepStatus
from cones.divergences import Ball
from cones.solvers.root import find_multiplier
from cones.solvers.solver import Solver, unmoved

__all__ = ["Dual"]


@dataclass(frozen=True)
class Dual(Solver):
    """The scalar dual: exact, O(n) per iteration of the root finder."""

    name = "dual"

    def solve(self, gradient: Any, ball: Ball) -> Step[Any]:
        lagrangian = ball.lagrangian(gradient)
        if lagrangian is None:
            return unmoved(gradient, StepStatus.ZERO_GRADIENT)
        point, iterations, converged = find_multiplier(lagrangian, ball.radius)
        if math.isnan(point.divergence):  # a gradient that is not finite
            return unmoved(gradient, StepStatus.FAILED)
        step = lagrangian.step(point)
        status = StepStatus.OPTIMAL if converged else StepStatus.INACCURATE
        if converged and step.status is StepStatus.UNPROVED:  # only the Lagrangian knows where the ball is convex
            status = step.status
        return step._replace(iterations=iterations, status=status)
