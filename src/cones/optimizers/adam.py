r"""Adam (Kingma & Ba, Algorithm 1).

first  <- beta1 first  + (1 - beta1) g
second <- beta2 second + (1 - beta2) g^2
change  = -rate * first / (1 - beta1^t) / ( sqrt(second / (1 - beta2^t)) + epsilon )
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cones.beliefs import DiagonalMatrix, Step
from cones.checks import check_fraction, check_positive, store
from cones.component import Storable, setting
from cones.kernels.spans import elementwise
from cones.optimizers.optimizer import Optimizer, checked_rates
from cones.types import Vector

__all__ = ["Adam", "AdamState"]


@dataclass(frozen=True)
class AdamState(Storable):
    """Running moments of the steps; `optimizer.py` describes those of a full covariance."""

    count: int
    mean_first: Vector
    mean_second: Vector
    covariance_first: Vector | None
    covariance_second: Vector


@dataclass(frozen=True)
class Adam(Optimizer[AdamState]):
    """Adam with separate learning rates for the mean and the log-variance.

    Example:
        >>> import cones
        >>> es = cones.CoNES([1.0, 2.0], optimizer=cones.Adam(0.05, 0.01))

    Reference: Kingma & Ba, Adam: A Method for Stochastic Optimization, ICLR 2015.
    """

    name = "adam"

    learning_rate: float = setting(0.1, "Learning rate of the mean.")
    variance_learning_rate: float | None = setting(
        None, "Learning rate of the log-variance; by default, that of the mean."
    )
    beta1: float = setting(0.9, "Decay of the first moment.")
    beta2: float = setting(0.999, "Decay of the second moment.")
    epsilon: float = setting(1e-8, "Added to the root of the second moment.")

    def __post_init__(self) -> None:
        store(
            self,
            **checked_rates(self.learning_rate, self.variance_learning_rate),
            beta1=check_fraction("beta1", self.beta1),
            beta2=check_fraction("beta2", self.beta2),
            epsilon=check_positive("epsilon", self.epsilon),
        )

    def start(self, step: Step[Any]) -> AdamState:
        zeros, matrix = np.zeros_like(step.shift), step.log_ratio
        if matrix is not None and matrix.keeps_axes:
            return AdamState(0, zeros, zeros, np.zeros_like(matrix.values), np.zeros_like(matrix.values))
        return AdamState(0, zeros, zeros, None, np.zeros(()))

    def update(self, state: AdamState, step: Step[Any]) -> tuple[Step[Any], AdamState]:
        t, matrix, rate = state.count + 1, step.log_ratio, self.variance_learning_rate or 0.0
        shift, first, second = self._descent(self.learning_rate, t, step.shift, state.mean_first, state.mean_second)
        if state.covariance_first is not None:
            values, *moments = self._descent(rate, t, matrix.values, state.covariance_first, state.covariance_second)
            new = AdamState(t, first, second, moments[0], moments[1])
            return step._replace(shift=shift, log_ratio=DiagonalMatrix(values)), new
        if matrix is None:
            return step._replace(shift=shift), AdamState(t, first, second, None, state.covariance_second)
        square = self.beta2 * state.covariance_second + (1.0 - self.beta2) * np.mean(matrix.values**2)
        factor = -rate / (math.sqrt(float(square) / (1.0 - self.beta2**t)) + self.epsilon)
        log_ratio = matrix.map(lambda values: factor * values)
        return step._replace(shift=shift, log_ratio=log_ratio), AdamState(t, first, second, None, np.asarray(square))

    def _descent(self, rate: float, t: int, gradient: Vector, first: Vector, second: Vector) -> Any:
        """The change, and both new moments."""
        beta1, beta2, epsilon = self.beta1, self.beta2, self.epsilon
        # Bias corrections as scalar factors save two passes over memory.
        correction1, correction2 = 1.0 - beta1**t, math.sqrt(1.0 - beta2**t)
        factor, offset = -rate * correction2 / correction1, epsilon * correction2

        def formula(g: Vector, first: Vector, second: Vector) -> tuple[Vector, Vector, Vector]:
            first = beta1 * first + (1.0 - beta1) * g
            second = beta2 * second + (1.0 - beta2) * (g * g)
            return factor * first / (np.sqrt(second) + offset), first, second

        return elementwise(formula, gradient, first, second)
