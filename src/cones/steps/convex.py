r"""CoNES: the steepest ascent inside a ball around the belief, ( L m*, log R* )."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cones.beliefs import Gaussian, Step
from cones.checks import store
from cones.component import component_from, setting
from cones.divergences import KL, Ball, Divergence
from cones.estimators import Estimate
from cones.solvers import Dual, Solver
from cones.steps.rule import IterationInfo, StepRule

__all__ = ["Convex"]


@dataclass(frozen=True)
class Convex(StepRule):
    """The convex program of CoNES (Veer & Majumdar, 2020)."""

    name = "convex"

    radius: float = setting(sentence="Radius of the ball D <= radius^2, the paper's epsilon.")
    solver: Any = setting(Dual(), 'Solver of the program: "dual" (exact), or "cvxpy", "clarabel", "scs", "mosek".')
    divergence: Any = setting(KL(), 'What the ball is of: "kl", the paper\'s.')

    def __post_init__(self) -> None:
        store(
            self,
            solver=component_from("solver", self.solver, Solver),  # type: ignore[type-abstract]
            divergence=component_from("divergence", self.divergence, Divergence),  # type: ignore[type-abstract]
        )
        store(self, radius=self.ball.radius)

    @property
    def ball(self) -> Ball:
        return Ball(self.divergence, self.radius)

    def propose(self, state: None, belief: Gaussian, estimate: Estimate, info: IterationInfo) -> tuple[Step[Any], None]:
        step = self.solver.solve(estimate.gradient, self.ball)
        # One ball for all parts is a bound for each of them.
        columns = dict.fromkeys(("mean_radius", "scale_radius", "shape_radius"), self.radius)
        return step._replace(shift=belief.from_frame(step.shift), columns=columns), None
