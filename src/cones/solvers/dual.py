"""The exact solver: one scalar equation for the multiplier of the ball."""

from __future__ import annotations

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
        lagrangian = ball.divergence.lagrangian(gradient, ball.radius)
        if lagrangian is None:
            return unmoved(gradient, StepStatus.ZERO_GRADIENT)
        point, iterations, converged = find_multiplier(lagrangian, ball.radius)
        step = lagrangian.step(point)
        return step._replace(iterations=iterations, status=StepStatus.OPTIMAL if converged else StepStatus.INACCURATE)
