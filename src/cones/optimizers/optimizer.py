"""The interface of an optimizer: a direction of ascent in, a change of the belief out.

Optimizers are settings; what they remember is a value of its own that each step returns anew. A step
that is interrupted leaves nothing half changed, and one optimizer can serve many runs.

**How an optimizer acts on a full covariance.** The mean is treated as for a diagonal belief, coordinate
by coordinate. The covariance changes in the frame of the current factor, L -> L exp(-rate D / 2), with
D the direction's low-rank matrix. A memory of past directions would have full rank and would belong to
frames that are gone, so that no first moment (momentum) is kept for the covariance, and Adam's second
moment is one number, the running mean of the squared eigenvalues of D (of those that the samples span):
an eigenvalue of typical size moves its logarithm by about the learning rate.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from cones.beliefs.gaussian.spectral import Spectral
from cones.checks import check_non_negative, check_positive
from cones.steps.step import Direction
from cones.types import Vector

__all__ = ["Change", "Optimizer"]

Memory = TypeVar("Memory")


class Change(NamedTuple):
    """How the belief moves: `Belief.moved(*change)`."""

    shift: Vector
    log_ratio: Spectral


class Optimizer(ABC, Generic[Memory]):
    """A gradient optimizer that descends in (mean, log-covariance in the frame)."""

    @abstractmethod
    def start(self, direction: Direction) -> Memory:
        """The memory before the first step, for directions of this shape."""

    @abstractmethod
    def step(self, memory: Memory, direction: Direction) -> tuple[Change, Memory]:
        """The descent step along `direction` and the memory after it. May write over the direction's arrays."""


def checked_rates(learning_rate: float, variance_learning_rate: float | None) -> dict[str, float]:
    """Both rates; that of the log-variance is the mean's if it is not given, and may be 0."""
    rate = check_positive("learning_rate", learning_rate)
    other = rate if variance_learning_rate is None else variance_learning_rate
    return {
        "learning_rate": rate,
        "variance_learning_rate": check_non_negative("variance_learning_rate", other),
    }


def mean_square(matrix: Spectral) -> float:
    """The mean of the squared eigenvalues on the basis."""
    return float(np.mean(matrix.values**2))
