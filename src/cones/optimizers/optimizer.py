"""The interface of an optimizer: an ascent step in, the step that the belief takes out.

Optimizers hold settings only; each update returns a new state. An interrupted update changes nothing, and one optimizer
can serve many runs.

**How an optimizer acts on a full covariance.** The mean is treated coordinate by coordinate, as for a diagonal belief.
The covariance changes in the frame of the current factor, L -> L exp(-rate D / 2), where D is the step's low-rank
matrix. Averages of past D would have full rank and refer to past frames. The covariance therefore has no first moment
(momentum), and Adam's second moment is one number, the running mean of the squared eigenvalues of D (of those that the
samples span). An eigenvalue of typical size changes its logarithm by about the learning rate.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

from cones.beliefs import Step
from cones.checks import check_non_negative, check_positive
from cones.component import Component

__all__ = ["Optimizer"]

State = TypeVar("State")


class Optimizer(Component, ABC, Generic[State]):
    """A gradient optimizer that descends in (mean, log-covariance in the frame)."""

    kind: ClassVar[str] = "optimizer"

    @abstractmethod
    def start(self, step: Step[Any]) -> State:
        """The state before the first update, for steps of this shape."""

    @abstractmethod
    def update(self, state: State, step: Step[Any]) -> tuple[Step[Any], State]:
        """The descent step for an ascent step, and the new state."""


def checked_rates(learning_rate: float, variance_learning_rate: float | None) -> dict[str, float]:
    """Both learning rates; that of the variance defaults to that of the mean."""
    rate = check_positive("learning_rate", learning_rate)
    other = rate if variance_learning_rate is None else variance_learning_rate
    return {
        "learning_rate": rate,
        "variance_learning_rate": check_non_negative("variance_learning_rate", other),
    }
