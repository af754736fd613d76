"""The interface of a refinement: a gradient estimate in, a direction for the optimizer out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

from cones.beliefs.belief import Belief, FrameGradient
from cones.beliefs.gaussian.spectral import Spectral
from cones.types import Vector

__all__ = ["NO_RADII", "Direction", "Radii", "Refinement", "Situation"]


@dataclass(frozen=True)
class Situation:
    """What a refinement may want to know of the iteration besides its gradient.

    Attributes:
        popsize: candidates of this iteration.
        unit: root mean square of their utilities.
        spent: evaluations before this iteration.
        budget: evaluations that the run may spend; infinite if that is not known.
        memory: what the last `Direction` asked to remember; None in the first iteration.
    """

    popsize: int = 2
    unit: float = 1.0
    spent: int = 0
    budget: float = math.inf
    memory: Any = None


class Radii(NamedTuple):
    """Radii of the KL balls around the parts of the belief, and the length of the mean's path.

    One ball for all parts is a bound for each of them. NaN where there is none.
    """

    mean: float = math.nan
    scale: float = math.nan
    shape: float = math.nan
    path_length: float = math.nan


NO_RADII = Radii()


@dataclass(frozen=True)
class Direction:
    """A direction of ascent in (mean, log-covariance in the frame), and what its solver said.

    `mean` is in the coordinates of the candidates. `multiplier` and `gap` are NaN for refinements
    that solve no program. `memory` is for the next iteration's `Situation`.
    """

    mean: Vector
    log_covariance: Spectral
    multiplier: float = math.nan
    gap: float = math.nan
    radii: Radii = NO_RADII
    memory: Any = None


class Refinement(ABC):
    """The one stage in which ES, NES and CoNES differ."""

    @abstractmethod
    def refine(self, belief: Belief, gradient: FrameGradient, situation: Situation) -> Direction:
        """The direction of ascent for this gradient at this belief. May write over the gradient's arrays."""
