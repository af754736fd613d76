r"""The radius by the length of the path of the last directions.

With v the direction of the estimate, |v| = 1:

    p      <- (1 - q) p + sqrt(q (2 - q)) v
    w      <- (1 - q)^2 w + q (2 - q)               the mean of |p|^2 if directions are independent; tends to 1
    radius <- radius exp( clip( gain (|p|^2 - w) ) )

After a step of the best length the next direction is orthogonal to it, however noisy the estimates are: a path longer
than a random one says that steps were too short, a shorter one that they were too long. (Cumulative step-size
adaptation of Hansen & Ostermeier, 2001, does the same for the spread of the candidates.)

The excess |p|^2 - w has a signal of about popsize / freedom and a noise of about 1 / sqrt(freedom), freedom being the
numbers that a direction can vary in. The gain grows with sqrt(freedom / popsize), between what tracks best and what
averages best, and is at most 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cones.checks import check_positive, store
from cones.kernels.buffers import new_vector
from cones.kernels.spans import for_each_span, inner
from cones.radius.control import Radius, RadiusControl, Signal
from cones.types import Vector

__all__ = ["DirectionPath", "PathLength", "PathMemory"]

# 1/q iterations are remembered. With q = 0.1 the control oscillates and diverges; 0.4 to 0.6 is a flat optimum.
FORGETTING = 0.5
GAIN = 0.2
LARGEST_CHANGE = 0.3  # of the logarithm of a radius in an iteration


@dataclass(frozen=True)
class DirectionPath:
    """Directions summed with fading weights, and the length that independent ones would have, squared."""

    vector: Vector
    expected: float = 0.0

    def extended(self, direction: Vector, length: float) -> DirectionPath:
        """With one more direction, of the given length."""
        keep, add = 1.0 - FORGETTING, math.sqrt(FORGETTING * (2.0 - FORGETTING)) / length
        old, vector, flat = self.vector.ravel(), direction.ravel(), new_vector(direction.size, self.vector.dtype)

        def work(part: slice) -> None:
            np.multiply(vector[part], add, out=flat[part])
            flat[part] += keep * old[part]

        for_each_span(work, flat.size)
        return DirectionPath(flat.reshape(direction.shape), keep**2 * self.expected + FORGETTING * (2.0 - FORGETTING))

    def squared_length(self) -> float:
        flat = self.vector.ravel()
        return inner(flat, flat)


@dataclass(frozen=True)
class PathMemory:
    """Of `PathLength`."""

    radius: float
    path: DirectionPath


@dataclass(frozen=True)
class PathLength(RadiusControl[PathMemory]):
    """Longer steps while they agree with each other, shorter ones when they do not.

    Args:
        start_radius: the first radius, in units of sqrt(2 freedom / popsize), which is what natural gradient descent
            with learning rate 1 would use up if losses had nothing to do with candidates.
        gain: relative to the one described above.
        largest: radius, in the same units.
    """

    start_radius: float = 1.5
    gain: float = 1.0
    largest: float = math.inf

    def __post_init__(self) -> None:
        store(
            self,
            start_radius=check_positive("start_radius", self.start_radius),
            gain=check_positive("gain", self.gain),
            largest=math.inf if self.largest == math.inf else check_positive("largest", self.largest),
        )

    def start(self, signal: Signal) -> PathMemory:
        return PathMemory(self.start_radius * self._unit(signal), DirectionPath(np.zeros_like(signal.estimate)))

    def radius(self, memory: PathMemory, signal: Signal) -> tuple[Radius, PathMemory]:
        if signal.length == 0.0:  # no direction: all losses tied, or tied in mirrored pairs
            return Radius(0.0), memory
        path = memory.path.extended(signal.estimate, signal.length)
        squared = path.squared_length()
        gain = self.gain * min(1.0, GAIN * math.sqrt(signal.freedom / signal.popsize))
        change = min(max(gain * (squared - path.expected), -LARGEST_CHANGE), LARGEST_CHANGE)
        radius = min(memory.radius * math.exp(change), self.largest * self._unit(signal))
        return Radius(radius, math.sqrt(squared / path.expected)), PathMemory(radius, path)

    def _unit(self, signal: Signal) -> float:
        return math.sqrt(2.0 * signal.freedom / signal.popsize)
