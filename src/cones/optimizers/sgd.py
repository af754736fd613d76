r"""Stochastic gradient descent with momentum.

velocity <- momentum velocity + g
change    = -rate velocity
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cones.beliefs.gaussian.spectral import Spectral
from cones.checks import check_fraction, store
from cones.optimizers.optimizer import Change, Optimizer, checked_rates
from cones.steps.step import Direction
from cones.types import Vector

__all__ = ["SGD", "SGDMemory"]


@dataclass(frozen=True)
class SGDMemory:
    """Velocities; none for a full covariance, as described in `optimizer.py`."""

    mean: Vector
    covariance: Vector | None


@dataclass(frozen=True)
class SGD(Optimizer[SGDMemory]):
    """SGD with momentum and separate learning rates for the mean and the log-variance.

    Args:
        learning_rate: of the mean.
        variance_learning_rate: of the log-variance; the same as `learning_rate` if not given.
        momentum: in [0, 1).

    Example:
        >>> import cones
        >>> es = cones.NES([1.0, 2.0], optimizer=cones.SGD(1.0, 0.1, momentum=0.5))
    """

    learning_rate: float = 0.1
    variance_learning_rate: float | None = None
    momentum: float = 0.0

    def __post_init__(self) -> None:
        store(
            self,
            **checked_rates(self.learning_rate, self.variance_learning_rate),
            momentum=check_fraction("momentum", self.momentum),
        )

    def start(self, direction: Direction) -> SGDMemory:
        matrix = direction.log_covariance
        return SGDMemory(np.zeros_like(direction.mean), np.zeros_like(matrix.values) if matrix.basis is None else None)

    def step(self, memory: SGDMemory, direction: Direction) -> tuple[Change, SGDMemory]:
        mean = self._velocity(memory.mean, direction.mean)
        rate = self.variance_learning_rate or 0.0
        if memory.covariance is None:
            log_ratio = direction.log_covariance.map(lambda values: -rate * values)
            return Change(-self.learning_rate * mean, log_ratio), SGDMemory(mean, None)
        covariance = self._velocity(memory.covariance, direction.log_covariance.values)
        return Change(-self.learning_rate * mean, Spectral(-rate * covariance)), SGDMemory(mean, covariance)

    def _velocity(self, velocity: Vector, gradient: Vector) -> Vector:
        new = self.momentum * velocity
        new += gradient
        return new
