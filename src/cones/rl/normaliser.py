"""Running mean and variance of observations, as in ARS (Mania, Guy and Recht, 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from cones.checks import check_integer, check_vector
from cones.component import Storable
from cones.types import Vector

__all__ = ["Normaliser"]

# A coordinate that varies less than this carries nothing; it is shown to the policy as 0.
LEAST_DEVIATION = 1e-7


@dataclass(frozen=True)
class Normaliser(Storable):
    """z = (observation - shift) * scale, with the mean and deviation of what was observed so far.

    Example:
        >>> seen = Normaliser.empty(1).merged(3, np.array([2.0]), np.array([2.0]))
        >>> seen.shift, seen.scale
        (array([2.]), array([1.]))
    """

    count: int
    mean: Vector
    scatter: Vector  # summed squared deviations from the mean

    @staticmethod
    def empty(dim: int) -> Normaliser:
        """Nothing observed: observations are left as they are."""
        return Normaliser(0, np.zeros(dim), np.zeros(dim))

    def merged(self, count: int, mean: Vector, scatter: Vector) -> Normaliser:
        """With `count` further observations of the given moments (Chan, Golub and LeVeque)."""
        total = self.count + count
        if not count:
            return self
        distance = mean - self.mean
        share = count / total
        return Normaliser(
            total, self.mean + distance * share, self.scatter + scatter + distance**2 * (self.count * share)
        )

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Self:
        check_integer("count", parts["count"], 0)
        mean = check_vector("mean", parts["mean"])
        check_vector("scatter", parts["scatter"], mean.size)
        return cls(**parts)

    @property
    def shift(self) -> Vector:
        return self.mean if self.count > 1 else np.zeros_like(self.mean)

    @property
    def scale(self) -> Vector:
        if self.count < 2:
            return np.ones_like(self.mean)
        deviation = np.sqrt(self.scatter / (self.count - 1))
        varies = deviation > LEAST_DEVIATION
        return np.where(varies, 1.0 / np.where(varies, deviation, 1.0), 0.0)
