r"""CoNES with three separate balls, for the mean, the scale and the shape of the belief.

A single ball couples parts whose estimates differ in signal-to-noise ratio by orders of magnitude. With
B = (tr B / n) I + B0 the step problem splits into three, solved in closed form or by the scalar dual:

    mean   maximize <a, m>                 KL = |m|^2 / 2              m = sqrt(2) radius a / |a|
    scale  maximize tr B (r - 1)           KL = n (r - 1 - log r) / 2  log r = 2 radius / sqrt(n), to second order
    shape  maximize <B0, R - I>            KL <= radius^2              the scalar dual with a = 0

Families other than Gaussians have one ball, and the scalar dual eta' = eta + g / lambda. In a product each factor has
balls of its own.

Every f-divergence has the same balls of the mean, and to second order those of the scale. The shape's may be of another
divergence D: it is D <= curvature radius^2, where curvature is D / KL of small changes, so that radii mean the same.

A step of pure noise lengthens the mean: in many dimensions it is nearly orthogonal to the mean, so their squared
lengths add. Where coordinates should keep a known size h, such as the weights of a network, the mean is shrunk to make
up for this, once the root mean square of its coordinates is h:

    mean <- (1 - |shift|^2 / (2 n h^2)) mean + shift

Each ball has a radius control; see `cones.radius`. The optimizer `cones.Direct` applies the step unchanged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from cones.beliefs import ExponentialFamily, FrameGradient, FrameMatrix, Step, StepStatus
from cones.checks import check_kind, check_positive, store
from cones.component import Storable, setting
from cones.divergences import KL, Ball, Divergence
from cones.errors import InputError
from cones.estimators import Estimate
from cones.kernels.spans import elementwise, inner
from cones.radius import EstimateStats, PathLength, PathState, Radius, RadiusControl, SignalRatio, Smoothing
from cones.solvers import Dual
from cones.solvers.solver import unmoved
from cones.steps.rule import IterationInfo, StepRule
from cones.types import Vector

__all__ = ["Balls", "BallsState"]

# Largest change of a log-variance per iteration; within the shape's ball a single one could change by much more.
LARGEST_LOG = 1.0
NO_MEAN = np.zeros(0)
DUAL, KL_DIVERGENCE, OPTIMAL = Dual(), KL(), StepStatus.OPTIMAL
# Of the largest radius that a divergence reaches.
REACHED = 0.999
LARGEST_SHRINKAGE = 0.5


@dataclass(frozen=True)
class BallsState(Storable):
    """The states of the three controls."""

    mean: Any = None
    scale: Any = None
    shape: Any = None


@dataclass(frozen=True)
class Balls(StepRule):
    """Three balls with adaptive radii.

    Args:
        mean, scale, shape: controls of their radii. The defaults need no tuning.
        divergence, chart: of the shape's ball, as for `cones.solve_step`.
        family: control of the only ball of a family other than Gaussians.
        hold: root mean square of the mean's coordinates from which noise no longer lengthens the mean.

    Example:
        >>> import cones
        >>> es = cones.CoNES([1.0, 2.0], radius=cones.Balls(shape=cones.radius.Fixed(0.0)))
    """

    name = "balls"

    # A third of the step of an evolution strategy that moves to the weighted mean of its better half: in flat
    # directions a larger first step is a random walk. On a loss without a minimum a bound keeps the mean within the
    # numbers that can be told from each other.
    mean: RadiusControl[Any] = setting(PathLength(0.5, largest=1e6), "Control of the mean's radius.", kind="radius")
    scale: RadiusControl[Any] = setting(SignalRatio(), "Control of the scale's radius.", kind="radius")
    # From 0.05 to 1 times natural gradient descent. At the mean's gain the shape is learnt 5 to 50 times worse.
    shape: RadiusControl[Any] = setting(
        PathLength(0.05, gain=0.5, largest=1.0), "Control of the shape's radius.", kind="radius"
    )

    divergence: Divergence = setting(KL(), "What the shape's ball is of, as for one ball.", kind="divergence")
    chart: str = setting("covariance", "Parameters in which the loss is linear in the shape's ball, as for one ball.")
    # A larger step makes a belief over bits certain at once.
    family: RadiusControl[Any] = setting(
        PathLength(0.05, gain=0.5, largest=0.1),
        "Control of the radius of a family other than Gaussians.",
        kind="radius",
    )
    hold: float = setting(
        math.inf,
        "Root mean square of the mean's coordinates from which the mean is shrunk by what noise adds to its length.",
    )

    def __post_init__(self) -> None:
        check_kind("divergence", self.divergence, Divergence)
        Ball(self.divergence, 0.5, self.chart)  # checks the chart
        if self.hold != math.inf:
            store(self, hold=check_positive("hold", self.hold))
        for ball in fields(self):
            if ball.name in ("divergence", "chart", "hold"):
                continue
            control = getattr(self, ball.name)
            if not isinstance(control, RadiusControl):
                raise InputError(f"{ball.name}: expected a control such as cones.radius.Fixed(1.0), got {control!r}")
            if isinstance(control, (SignalRatio, Smoothing)) and ball.name != "scale":
                kind = type(control).__name__
                raise InputError(f"{ball.name}: expected a control other than {kind}, which is for the scale only")

    def propose(
        self, state: BallsState | None, belief: Any, estimate: Estimate, info: IterationInfo
    ) -> tuple[Step[Any], BallsState]:
        state = state or BallsState()
        if isinstance(belief, ExponentialFamily):
            return self._one_ball(state, belief, estimate, info)
        n, samples, noise = belief.dim, estimate.effective_samples, estimate.noise
        a, matrix = estimate.gradient.mean, estimate.gradient.covariance

        def stats(part: Vector, length: float, noise: float, freedom: int, travel: float = math.nan) -> EstimateStats:
            return EstimateStats(part, length, noise, freedom, n, samples, travel, info.spent, info.budget)

        length = math.sqrt(inner(a, a))
        mean, of_mean = _next(self.mean, state.mean, stats(a, length, noise.mean, n))
        travel = math.sqrt(2.0) * mean.radius
        factor = travel / length if length else 0.0

        trace = matrix.trace()
        part = np.array([trace])
        of_trace = stats(part, abs(trace), noise.scale, 1, travel)
        if isinstance(state.shape, PathState):
            of_trace = of_trace._replace(
                shape=state.shape.radius / math.sqrt(2.0 * belief.covariance_freedom / samples)
            )
        scale, of_scale = _next(self.scale, state.scale, of_trace)
        growth = math.copysign(2.0 / math.sqrt(n), trace) * scale.radius

        rest = matrix.map(lambda values: values - trace / n)
        length, freedom = rest.norm(), belief.covariance_freedom
        shape, of_shape = _next(self.shape, state.shape, stats(rest.entries(), length, noise.shape, freedom))
        step = self._shape_step(rest, shape.radius, n, growth)
        del rest  # large
        return step._replace(
            shift=self._held(belief.from_frame(elementwise(lambda part: part * factor, a)), belief.mean),
            columns={
                "mean_radius": mean.radius,
                "scale_radius": abs(scale.radius),
                "shape_radius": shape.radius,
                "path_length": mean.path_length,
            },
        ), BallsState(of_mean, of_scale, of_shape)

    def _held(self, shift: Vector, mean: Vector) -> Vector:
        """The shift, which is subtracted from the mean, with what holds the mean's size."""
        if self.hold == math.inf:
            return shift
        shrinkage = min(LARGEST_SHRINKAGE, inner(shift, shift) / (2.0 * mean.size * self.hold**2))
        held: Vector = elementwise(lambda part, centre: part + shrinkage * centre, shift, mean)
        return held

    def _shape_step(self, matrix: FrameMatrix, radius: float, n: int, growth: float) -> Step[Any]:
        """The step of the shape's ball in n dimensions, made traceless, plus `growth`, the step of the scale."""
        gradient = FrameGradient(NO_MEAN, matrix)
        step = unmoved(gradient, StepStatus.OPTIMAL)
        if radius:
            of = self.divergence
            inside = min(math.sqrt(of.curvature) * radius, REACHED * of.largest_radius)
            step = DUAL.solve(gradient, Ball(of, inside, self.chart))
        if step.status is StepStatus.ZERO_GRADIENT:  # only the shape's gradient is zero
            step = step._replace(status=StepStatus.OPTIMAL)
        centre = step.log_ratio.trace() / n

        def centred(logs: Vector) -> Vector:
            return np.asarray(np.minimum(np.maximum(logs - centre, -LARGEST_LOG), LARGEST_LOG) + growth)

        return step._replace(log_ratio=step.log_ratio.map(centred))

    def _one_ball(
        self, state: BallsState, belief: ExponentialFamily, estimate: Estimate, info: IterationInfo
    ) -> tuple[Step[Any], BallsState]:
        """The step of another family than a Gaussian: one ball."""
        a = belief.whitened(belief.covariance_times(estimate.gradient.mean))
        length, samples = math.sqrt(inner(a, a)), estimate.effective_samples
        stats = EstimateStats(
            a, length, estimate.noise.mean, belief.freedom, belief.dim, samples, math.nan, info.spent, info.budget
        )
        mean, of_mean = _next(self.family, state.mean, stats)
        gradient = estimate.gradient
        step = DUAL.solve(gradient, Ball(KL_DIVERGENCE, mean.radius)) if mean.radius else unmoved(gradient, OPTIMAL)
        columns = {"mean_radius": mean.radius, "path_length": mean.path_length}
        return step._replace(columns=columns), BallsState(of_mean)


def _next(control: RadiusControl[Any], state: Any, stats: EstimateStats) -> tuple[Radius, Any]:
    return control.radius(control.start(stats) if state is None else state, stats)
