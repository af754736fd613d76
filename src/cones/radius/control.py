"""The interface of a radius control: statistics of an iteration's estimate in, the radius of a ball out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Generic, NamedTuple, TypeVar

from cones.component import Component
from cones.types import Vector

__all__ = ["State", "Radius", "RadiusControl", "EstimateStats"]

State = TypeVar("State")


class EstimateStats(NamedTuple):
    """Statistics of an iteration's estimate for the part of the belief that a ball bounds, in the frame.

    Attributes:
        estimate: part of the gradient: a for the mean, the trace of B for the scale, traceless B for the shape.
        length: its norm.
        noise: its root mean square norm if losses were independent of candidates. length / noise does not depend on the
            loss's units or the shaping.
        freedom: its degrees of freedom.
        dim: number of coordinates of a candidate.
        samples: effective number of independent samples.
        travel: the length of the mean's step in this iteration, in the frame; NaN for the mean itself.
        spent: evaluations before this iteration.
        budget: total evaluations of the run; infinite if unknown.
        shape: the shape's radius in the last iteration, in units of a natural gradient step; 0 if it is not known.
    """

    estimate: Vector
    length: float
    noise: float
    freedom: int
    dim: int
    samples: float
    travel: float = math.nan
    spent: int = 0
    budget: float = math.inf
    shape: float = 0.0


class Radius(NamedTuple):
    """The radius of a ball KL <= radius^2 for this iteration.

    `radius` is negative if the control's state contradicts the last estimate; the step is then reversed. `path_length`
    is the length of the path of recent directions, 1 on average if they are independent.
    """

    radius: float
    path_length: float = math.nan


class RadiusControl(Component, ABC, Generic[State]):
    """Chooses the radius of a ball in every iteration. Holds settings only; its state is passed in and returned."""

    kind: ClassVar[str] = "radius"

    @abstractmethod
    def start(self, stats: EstimateStats) -> State:
        """The state before the first iteration; `stats` are those of that iteration."""

    @abstractmethod
    def radius(self, state: State, stats: EstimateStats) -> tuple[Radius, State]:
        """The radius for these statistics, and the new state."""
