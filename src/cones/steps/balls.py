r"""CoNES with a ball of its own for each part of the belief: mean, scale and shape.

One ball for all couples parts whose estimates differ in their signal-to-noise ratio by orders of magnitude. With
B = (tr B / n) I + B0 the step problem falls into three, solved in closed form or by the scalar dual:

    mean   maximize <a, m>                 KL = |m|^2 / 2              m = sqrt(2) radius a / |a|
    scale  maximize tr B (r - 1)           KL = n (r - 1 - log r) / 2  log r = 2 radius / sqrt(n), to second order
    shape  maximize <B0, R - I>            KL <= radius^2              the scalar dual with a = 0

The radii come from controls, one per ball; see `cones.radius`. Such a step is taken as it is, by `cones.Direct`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from cones.beliefs.belief import Belief, FrameGradient
from cones.beliefs.gaussian.spectral import Spectral
from cones.errors import InputError
from cones.kernels.spans import for_each_span, inner
from cones.radius import PathLength, RadiusControl, Signal, SignalRatio
from cones.radius.control import Radius
from cones.solvers.dual import solve_dual
from cones.steps.step import Direction, Radii, Refinement, Situation
from cones.types import Vector

__all__ = ["Balls", "BallsMemory"]

# Of the logarithm of a variance in an iteration; the shape's ball alone would let a single one change by much more.
LARGEST_LOG = 1.0


@dataclass(frozen=True)
class BallsMemory:
    """What the three controls remember."""

    mean: Any
    scale: Any
    shape: Any


@dataclass(frozen=True)
class Balls(Refinement):
    """Three KL balls whose radii are chosen anew in every iteration.

    Args:
        mean, scale, shape: controls of their radii; by default nothing has to be set.

    Example:
        >>> import cones
        >>> es = cones.CoNES([1.0, 2.0], radius=cones.Balls(shape=cones.radius.Fixed(0.0)))
    """

    # About the step of an evolution strategy that moves to the weighted mean of its better half. On a loss without a
    # minimum a bound keeps the mean within the numbers that can be told from each other.
    mean: RadiusControl[Any] = field(default_factory=lambda: PathLength(1.5, largest=1e6))
    scale: RadiusControl[Any] = field(default_factory=SignalRatio)
    # From 0.05 to 1 times natural gradient descent. At the mean's gain the shape is learnt 5 to 50 times worse.
    shape: RadiusControl[Any] = field(default_factory=lambda: PathLength(0.05, gain=0.5, largest=1.0))

    def __post_init__(self) -> None:
        for ball in fields(self):
            control = getattr(self, ball.name)
            if not isinstance(control, RadiusControl):
                raise InputError(f"{ball.name}: expected a control such as cones.radius.Fixed(1.0), got {control!r}")
            if isinstance(control, SignalRatio) and ball.name != "scale":
                raise InputError(f"{ball.name}: SignalRatio is for the scale, which is one number")

    def refine(self, belief: Belief, gradient: FrameGradient, situation: Situation) -> Direction:
        n, popsize, memory = belief.dim, situation.popsize, situation.memory
        of_mean, of_scale, of_shape = (None,) * 3 if memory is None else (memory.mean, memory.scale, memory.shape)

        def signal(estimate: Vector, length: float, freedom: int, spread: float, travel: float = math.nan) -> Signal:
            noise = situation.unit * math.sqrt(spread / popsize)
            return Signal(estimate, length, noise, freedom, n, popsize, travel, situation.spent, situation.budget)

        a = gradient.mean
        length = math.sqrt(inner(a, a))
        mean, of_mean = _next(self.mean, of_mean, signal(a, length, n, n))
        travel = math.sqrt(2.0) * mean.radius
        step = belief.from_frame(_multiplied(a, travel / length if length else 0.0), out=a)

        trace = gradient.covariance.trace()
        scale, of_scale = _next(self.scale, of_scale, signal(np.array([trace]), abs(trace), 1, 0.5 * n, travel))
        growth = math.copysign(2.0 / math.sqrt(n), trace) * scale.radius

        rest = gradient.covariance.map(lambda values: _added(values, -trace / n))
        length, freedom = rest.norm(), belief.covariance_freedom
        estimate = rest.values if rest.basis is None else rest.dense()
        shape, of_shape = _next(self.shape, of_shape, signal(estimate, length, freedom, 0.5 * freedom))
        logs, multiplier, gap = _shaped(rest, length, shape.radius)
        return Direction(
            step,
            logs.map(lambda values: _added(values, growth)),
            multiplier,
            gap,
            radii=Radii(mean.radius, abs(scale.radius), shape.radius, mean.path_length),
            memory=BallsMemory(of_mean, of_scale, of_shape),
        )


def _next(control: RadiusControl[Any], memory: Any, signal: Signal) -> tuple[Radius, Any]:
    return control.radius(control.start(signal) if memory is None else memory, signal)


def _shaped(matrix: Spectral, length: float, radius: float) -> tuple[Spectral, float, float]:
    """log R of the shape's ball, centred, as the scale has a ball of its own; the multiplier and the duality gap."""
    if length == 0.0 or radius == 0.0:
        return matrix.map(np.zeros_like), 0.0, 0.0
    point = solve_dual(0.0, matrix.spectrum(), radius)
    logs = point.log_ratio
    centre = -float(np.sum(logs, dtype=np.float64)) / logs.size

    def work(part: slice) -> None:
        logs[part] += centre
        np.clip(logs[part], -LARGEST_LOG, LARGEST_LOG, out=logs[part])

    for_each_span(work, logs.size)
    return matrix.with_spectrum(logs), point.multiplier, point.gap


def _multiplied(vector: Vector, factor: float) -> Vector:
    """In place."""

    def work(part: slice) -> None:
        vector[part] *= factor

    for_each_span(work, vector.size)
    return vector


def _added(vector: Vector, number: float) -> Vector:
    """In place."""

    def work(part: slice) -> None:
        vector[part] += number

    for_each_span(work, vector.size)
    return vector
