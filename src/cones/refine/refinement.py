"""The interface of a refinement: a gradient estimate in, a direction for the optimizer out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from cones.beliefs.belief import Belief, FrameGradient
from cones.beliefs.spectral import Spectral
from cones.types import Vector

__all__ = ["Direction", "Refinement"]


@dataclass(frozen=True)
class Direction:
    """A direction of ascent in (mean, log-covariance in the frame), and what its solver said.

    `mean` is in the coordinates of the candidates. `multiplier` and `gap` are NaN for refinements
    that solve no program.
    """

    mean: Vector
    log_covariance: Spectral
    multiplier: float = math.nan
    gap: float = math.nan


class Refinement(ABC):
    """The one stage in which ES, NES and CoNES differ."""

    @abstractmethod
    def refine(self, belief: Belief, gradient: FrameGradient) -> Direction:
        """The direction of ascent for this gradient at this belief."""
