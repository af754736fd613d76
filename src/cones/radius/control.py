"""The interface of a radius control: what an iteration says about one ball in, the ball's radius out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Generic, NamedTuple, TypeVar

from cones.component import Component
from cones.types import Vector

__all__ = ["State", "Radius", "RadiusControl", "EstimateStats"]

State = TypeVar("State")


class EstimateStats(NamedTuple):
    """What an iteration says about the part of the belief that a ball is for, in the frame.

    Attributes:
        estimate: the gradient's part: a for the mean, the trace of B for the scale, B without it for the shape.
        length: its norm.
        noise: the norm that it would have, root mean square, if losses had nothing to do with candidates. Against it
            neither the loss's units nor the shaping matter.
        freedom: how many numbers it can vary in.
        dim: coordinates of a candidate.
        samples: how many independent samples the estimate is worth.
        travel: the length of the mean's step in this iteration, in the frame; NaN for the mean itself.
        spent: evaluations so far, before this iteration.
        budget: evaluations that the run may spend; infinite if that is not known.
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


class Radius(NamedTuple):
    """The radius of a ball KL <= radius^2 for this iteration.

    `radius` is negative where what the control remembers contradicts the last estimate: the step then goes the
    other way. `path_length` is that of the last directions, 1 on average if they have nothing to do with each other.
    """

    radius: float
    path_length: float = math.nan


class RadiusControl(Component, ABC, Generic[State]):
    """Chooses the radius of a ball anew in every iteration.

    Controls are settings; what they remember is a value that each call returns anew.
    """

    kind: ClassVar[str] = "radius"

    @abstractmethod
    def start(self, stats: EstimateStats) -> State:
        """The state before the first iteration, whose stats this is."""

    @abstractmethod
    def radius(self, state: State, stats: EstimateStats) -> tuple[Radius, State]:
        """The radius for this stats, and the state after it."""
