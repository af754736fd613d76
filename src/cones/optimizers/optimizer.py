"""The interface of an optimizer: a step of ascent in, the step that the belief takes out.

Optimizers are settings; what they remember is a value of its own that each update returns anew. An update that is
interrupted leaves nothing half changed, and one optimizer can serve many runs.

**How an optimizer acts on a full covariance.** The mean is treated as for a diagonal belief, coordinate
by coordinate. The covariance changes in the frame of the current factor, L -> L exp(-rate D / 2), with
D the step's low-rank matrix. A memory of past steps would have full rank and would belong to frames that are gone, so
that no first moment (momentum) is kept for the covariance, and Adam's second moment is one number, the running mean of
the squared eigenvalues of D (of those that the samples span): an eigenvalue of typical size moves its logarithm by
about the learning rate.
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
        """The descent along a step of ascent, and the state after it."""


def checked_rates(learning_rate: float, variance_learning_rate: float | None) -> dict[str, float]:
    """Both learning rates, that of the variance being the mean's if it is not given."""
    rate = check_positive("learning_rate", learning_rate)
    other = rate if variance_learning_rate is None else variance_learning_rate
    return {
        "learning_rate": rate,
        "variance_learning_rate": check_non_negative("variance_learning_rate", other),
    }
