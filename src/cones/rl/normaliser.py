"""Running mean and variance of observations, as in ARS (Mania, Guy and Recht, 2018)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cones.types import Vector

__all__ = ["Normaliser"]

# A coordinate that varies less than this carries nothing; it is shown to the policy as 0.
LEAST_DEVIATION = 1e-7


@dataclass(frozen=True)
class Normaliser:
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

    def state(self) -> dict[str, Any]:
        """The numbers as JSON, for a checkpoint."""
        return {"count": self.count, "mean": self.mean.tolist(), "scatter": self.scatter.tolist()}

    @staticmethod
    def from_state(state: Mapping[str, Any]) -> Normaliser:
        return Normaliser(state["count"], np.array(state["mean"]), np.array(state["scatter"]))

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
