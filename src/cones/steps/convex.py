r"""CoNES: the steepest ascent inside a KL ball, ( L m*, log R* )."""

from __future__ import annotations

from dataclasses import dataclass

from cones.beliefs.belief import Belief, FrameGradient
from cones.checks import check_one_of, store
from cones.solvers.step_problem import SOLVERS, check_radius, solve_frame
from cones.steps.step import Direction, Radii, Refinement, Situation

__all__ = ["Convex"]


@dataclass(frozen=True)
class Convex(Refinement):
    """The convex program of CoNES (Veer & Majumdar, 2020).

    Args:
        radius: of the ball KL <= radius^2, the paper's epsilon.
        solver: "dual" (exact, the default) or one of the cone solvers of `cones.solve_step`.
    """

    radius: float
    solver: str = "dual"

    def __post_init__(self) -> None:
        store(self, radius=check_radius(self.radius))
        if check_one_of("solver", self.solver, SOLVERS) != "dual":
            from cones.solvers.cone_program import check_available

            check_available(self.solver)  # now, not after the first population was evaluated

    def refine(self, belief: Belief, gradient: FrameGradient, situation: Situation) -> Direction:
        step = solve_frame(gradient, self.radius, self.solver)
        radii = Radii(self.radius, self.radius, self.radius)
        return Direction(belief.from_frame(step.mean, out=step.mean), step.log_ratio, step.multiplier, step.gap, radii)
