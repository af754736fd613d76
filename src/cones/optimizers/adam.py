r"""Adam (Kingma & Ba, Algorithm 1).

first  <- beta1 first  + (1 - beta1) g
second <- beta2 second + (1 - beta2) g^2
change  = -rate * first / (1 - beta1^t) / ( sqrt(second / (1 - beta2^t)) + epsilon )
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cones.beliefs.gaussian.spectral import Spectral
from cones.checks import check_fraction, check_positive, store
from cones.kernels.buffers import new_vector
from cones.kernels.spans import for_each_span
from cones.optimizers.optimizer import Change, Optimizer, checked_rates, mean_square
from cones.steps.step import Direction
from cones.types import Vector

__all__ = ["Adam", "AdamMemory"]


@dataclass(frozen=True)
class AdamMemory:
    """Moments of the directions so far; those of a full covariance are described in `optimizer.py`."""

    count: int
    mean_first: Vector
    mean_second: Vector
    covariance_first: Vector | None
    covariance_second: Vector


@dataclass(frozen=True)
class Adam(Optimizer[AdamMemory]):
    """Adam with separate learning rates for the mean and the log-variance.

    Args:
        learning_rate: of the mean.
        variance_learning_rate: of the log-variance; the same as `learning_rate` if not given.
        beta1, beta2, epsilon: as in the reference, which also gives their defaults.

    Example:
        >>> import cones
        >>> es = cones.CoNES([1.0, 2.0], optimizer=cones.Adam(0.05, 0.01))

    Reference: Kingma & Ba, Adam: A Method for Stochastic Optimization, ICLR 2015.
    """

    learning_rate: float = 0.1
    variance_learning_rate: float | None = None
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        store(
            self,
            **checked_rates(self.learning_rate, self.variance_learning_rate),
            beta1=check_fraction("beta1", self.beta1),
            beta2=check_fraction("beta2", self.beta2),
            epsilon=check_positive("epsilon", self.epsilon),
        )

    def start(self, direction: Direction) -> AdamMemory:
        zeros = np.zeros_like(direction.mean)
        diagonal = direction.log_covariance.basis is None
        covariance = np.zeros_like(direction.log_covariance.values) if diagonal else np.zeros(())
        return AdamMemory(0, zeros, zeros, covariance if diagonal else None, covariance)

    def step(self, memory: AdamMemory, direction: Direction) -> tuple[Change, AdamMemory]:
        count = memory.count + 1
        shift, first, second = self._descent(
            self.learning_rate, memory.mean_first, memory.mean_second, direction.mean, count
        )
        matrix = direction.log_covariance
        rate = self.variance_learning_rate or 0.0
        if memory.covariance_first is not None:
            values, *moments = self._descent(
                rate, memory.covariance_first, memory.covariance_second, matrix.values, count
            )
            return Change(shift, Spectral(values)), AdamMemory(count, first, second, moments[0], moments[1])
        square = np.asarray(self.beta2 * memory.covariance_second + (1.0 - self.beta2) * mean_square(matrix))
        root = math.sqrt(float(square) / (1.0 - self.beta2**count))
        log_ratio = matrix.map(lambda values: values * (-rate / (root + self.epsilon)))
        return Change(shift, log_ratio), AdamMemory(count, first, second, None, square)

    def _descent(
        self, rate: float, first: Vector, second: Vector, gradient: Vector, count: int
    ) -> tuple[Vector, Vector, Vector]:
        """The change, written over the gradient, and both moments after it."""
        new_first, new_second = (new_vector(first.size, first.dtype) for _ in range(2))
        # The bias corrections as two numbers instead of two passes over memory.
        first_correction, second_correction = 1.0 - self.beta1**count, math.sqrt(1.0 - self.beta2**count)

        def work(part: slice) -> None:
            change, mean, square = gradient[part], new_first[part], new_second[part]
            np.multiply(first[part], self.beta1, out=mean)
            mean += change * (1.0 - self.beta1)
            np.multiply(change, change, out=change)
            change *= 1.0 - self.beta2
            np.multiply(second[part], self.beta2, out=square)
            square += change
            np.sqrt(square, out=change)
            change += self.epsilon * second_correction
            np.divide(mean, change, out=change)
            change *= -rate * second_correction / first_correction

        for_each_span(work, gradient.size)
        return gradient, new_first, new_second
