r"""CoNES: the steepest ascent step inside a ball around the belief, ( L m*, log R* )."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cones.beliefs import Step
from cones.checks import check_kind, store
from cones.component import setting
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
    solver: Solver = setting(
        Dual(), 'Solver of the program: "dual" (exact), or "cvxpy", "clarabel", "scs", "mosek".', kind="solver"
    )
    divergence: Divergence = setting(
        KL(),
        'What the ball is of: "kl" (the paper), "reverse_kl", "chi2", "hellinger", "renyi:ALPHA".',
        kind="divergence",
    )

    chart: str = setting(
        "covariance",
        'Parameters in which the loss is linear: "covariance" (the paper), "mean_parameters" (of "kl"), '
        '"natural_parameters" (of "reverse_kl").',
    )

    def __post_init__(self) -> None:
        check_kind("solver", self.solver, Solver)
        check_kind("divergence", self.divergence, Divergence)
        store(self, radius=self.ball.radius)

    @property
    def ball(self) -> Ball:
        return Ball(self.divergence, self.radius, self.chart)

    def propose(self, state: None, belief: Any, estimate: Estimate, info: IterationInfo) -> tuple[Step[Any], None]:
        step = self.solver.solve(estimate.gradient, self.ball)
        # The radius of the joint ball bounds each part.
        columns = dict.fromkeys(("mean_radius", "scale_radius", "shape_radius"), self.radius)
        return step._replace(shift=belief.from_frame(step.shift), columns=columns), None
