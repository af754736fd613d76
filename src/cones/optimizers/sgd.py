r"""Stochastic gradient descent with momentum.

velocity <- momentum velocity + g
change    = -rate velocity
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cones.beliefs import DiagonalMatrix, Step
from cones.checks import check_fraction, store
from cones.component import Storable, setting
from cones.kernels.spans import elementwise
from cones.optimizers.optimizer import Optimizer, checked_rates
from cones.types import Vector

__all__ = ["SGD", "SGDState"]


@dataclass(frozen=True)
class SGDState(Storable):
    """Velocities; None for a full covariance (see `optimizer.py`)."""

    mean: Vector
    covariance: Vector | None


@dataclass(frozen=True)
class SGD(Optimizer[SGDState]):
    """SGD with momentum and separate learning rates for the mean and the log-variance.

    Example:
        >>> import cones
        >>> es = cones.NES([1.0, 2.0], optimizer=cones.SGD(1.0, 0.1, momentum=0.5))
    """

    name = "sgd"

    learning_rate: float = setting(0.1, "Learning rate of the mean.")
    variance_learning_rate: float | None = setting(
        None, "Learning rate of the log-variance; by default, that of the mean."
    )
    momentum: float = setting(0.0, "Decay of the velocity, in [0, 1).")

    def __post_init__(self) -> None:
        store(
            self,
            **checked_rates(self.learning_rate, self.variance_learning_rate),
            momentum=check_fraction("momentum", self.momentum),
        )

    def start(self, step: Step[Any]) -> SGDState:
        matrix = step.log_ratio
        keeps = matrix is not None and matrix.keeps_axes
        return SGDState(np.zeros_like(step.shift), np.zeros_like(matrix.values) if keeps else None)

    def update(self, state: SGDState, step: Step[Any]) -> tuple[Step[Any], SGDState]:
        matrix, rate = step.log_ratio, self.variance_learning_rate or 0.0
        shift, mean = self._descent(self.learning_rate, state.mean, step.shift)
        if state.covariance is None:
            log_ratio = None if matrix is None else matrix.map(lambda g: -rate * g)
            return step._replace(shift=shift, log_ratio=log_ratio), SGDState(mean, None)
        values, covariance = self._descent(rate, state.covariance, matrix.values)
        return step._replace(shift=shift, log_ratio=DiagonalMatrix(values)), SGDState(mean, covariance)

    def _descent(self, rate: float, velocity: Vector, gradient: Vector) -> Any:
        """The change, and the new velocity."""

        def formula(velocity: Vector, g: Vector) -> tuple[Vector, Vector]:
            velocity = self.momentum * velocity + g
            return -rate * velocity, velocity

        return elementwise(formula, velocity, gradient)
