r"""The radius from the length of the path of recent directions.

With v the direction of the estimate, |v| = 1:

    p      <- (1 - q) p + sqrt(q (2 - q)) v
    w      <- (1 - q)^2 w + q (2 - q)               the mean of |p|^2 if directions are independent; tends to 1
    radius <- radius exp( clip( gain (|p|^2 - w) ) )

After a step of optimal length, the expected next direction is orthogonal to it, however noisy the estimates are. A path
longer than a random one means that steps were too short, a shorter one that they were too long. (Cumulative step-size
adaptation of Hansen & Ostermeier, 2001, does the same for the spread of the candidates.)

The excess |p|^2 - w has a signal of about samples / freedom and noise of about 1 / sqrt(freedom), where freedom is the
dimension of a direction. The gain grows with sqrt(freedom / samples), a compromise between tracking and averaging, and
is at most 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cones.checks import check_positive, store
from cones.component import Storable, setting
from cones.kernels.spans import elementwise, inner
from cones.radius.control import EstimateStats, Radius, RadiusControl
from cones.types import Vector

__all__ = ["DirectionPath", "PathLength", "PathState"]

# q; the path averages about 1/q iterations. With q = 0.1 the control oscillates and diverges; 0.4 to 0.6 work best.
FORGETTING = 0.5
GAIN = 0.2
LARGEST_CHANGE = 0.3  # of log radius per iteration


@dataclass(frozen=True)
class DirectionPath(Storable):
    """The path p, and w, the expected |p|^2 for independent directions."""

    vector: Vector
    expected: float = 0.0

    def extended(self, direction: Vector, length: float) -> DirectionPath:
        """The path after one more direction; `length` is its norm."""
        keep, add = 1.0 - FORGETTING, math.sqrt(FORGETTING * (2.0 - FORGETTING)) / length
        if direction.ndim == 1:
            path = elementwise(lambda v, p: add * v + keep * p, direction, self.vector)
        else:
            path = add * direction + keep * self.vector
        return DirectionPath(path, keep**2 * self.expected + FORGETTING * (2.0 - FORGETTING))

    def squared_length(self) -> float:
        flat = self.vector.ravel()
        return inner(flat, flat)


@dataclass(frozen=True)
class PathState(Storable):
    """The state of `PathLength`."""

    radius: float
    path: DirectionPath


@dataclass(frozen=True)
class PathLength(RadiusControl[PathState]):
    """Lengthens steps while successive directions agree, and shortens them when they do not.

    The unit of radii is sqrt(2 freedom / samples): the radius of a natural gradient step with learning rate 1 if losses
    were independent of candidates.
    """

    name = "path_length"

    start_radius: float = setting(1.5, "The first radius, in units of sqrt(2 freedom / samples).")
    gain: float = setting(1.0, "Gain relative to min(1, 0.2 sqrt(freedom / samples)).")
    largest: float = setting(math.inf, "The largest radius, in the same units.")

    def __post_init__(self) -> None:
        store(
            self,
            start_radius=check_positive("start_radius", self.start_radius),
            gain=check_positive("gain", self.gain),
            largest=math.inf if self.largest == math.inf else check_positive("largest", self.largest),
        )

    def start(self, stats: EstimateStats) -> PathState:
        return PathState(self.start_radius * self._unit(stats), DirectionPath(np.zeros_like(stats.estimate)))

    def radius(self, state: PathState, stats: EstimateStats) -> tuple[Radius, PathState]:
        if stats.length == 0.0:  # no direction: all losses tied, or tied in mirrored pairs
            return Radius(0.0), state
        path = state.path.extended(stats.estimate, stats.length)
        squared = path.squared_length()
        gain = self.gain * min(1.0, GAIN * math.sqrt(stats.freedom / stats.samples))
        change = min(max(gain * (squared - path.expected), -LARGEST_CHANGE), LARGEST_CHANGE)
        radius = min(state.radius * math.exp(change), self.largest * self._unit(stats))
        return Radius(radius, math.sqrt(squared / path.expected)), PathState(radius, path)

    def _unit(self, stats: EstimateStats) -> float:
        return math.sqrt(2.0 * stats.freedom / stats.samples)
