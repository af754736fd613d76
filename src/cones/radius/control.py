"""The interface of a radius control: what an iteration says about one ball in, the ball's radius out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from cones.types import Vector

__all__ = ["Memory", "Radius", "RadiusControl", "Signal"]

Memory = TypeVar("Memory")


@dataclass(frozen=True)
class Signal:
    """What an iteration says about the part of the belief that a ball is for, in the frame.

    Attributes:
        estimate: the gradient's part: a for the mean, the trace of B for the scale, B without it for the shape. The
            step is written over it: a control that remembers it has to copy it.
        length: its norm.
        noise: the norm that it would have, root mean square, if losses had nothing to do with candidates. Against it
            neither the loss's units nor the shaping matter.
        freedom: how many numbers it can vary in.
        dim: coordinates of a candidate.
        popsize: how many candidates it was made from.
        travel: the length of the mean's step in this iteration, in the frame; NaN for the mean itself.
        spent: evaluations so far, before this iteration.
        budget: evaluations that the run may spend; infinite if that is not known.
    """

    estimate: Vector
    length: float
    noise: float
    freedom: int
    dim: int
    popsize: int
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


class RadiusControl(ABC, Generic[Memory]):
    """Chooses the radius of a ball anew in every iteration.

    Controls are settings; what they remember is a value that each call returns anew.
    """

    @abstractmethod
    def start(self, signal: Signal) -> Memory:
        """The memory before the first iteration, whose signal this is."""

    @abstractmethod
    def radius(self, memory: Memory, signal: Signal) -> tuple[Radius, Memory]:
        """The radius for this signal, and the memory after it."""
