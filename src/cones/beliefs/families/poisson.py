r"""Independent counts.

With r the rate and d a change of eta = log r,

    KL = r (d e^d - e^d + 1),     Var(x) = r
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, ndtr, pdtr

from cones.beliefs.families.family import ExponentialFamily, Tilt, check_margin
from cones.checks import check_vector
from cones.types import Matrix, Vector

__all__ = ["Poisson"]

# Rates stay below this, where every count is still a float, and above the margin or this number's inverse.
LARGEST = 1e15
# Counts of smaller rates are looked up in a table of the distribution function.
TABLE_UP_TO = 1e4
# Below this |d|, KL is computed by its power series, because it cancels.
SMALL = 0.01
SERIES = [(k - 1) / np.prod(np.arange(1.0, k + 1)) for k in range(2, 9)]


class Poisson(ExponentialFamily):
    """Independent counts: coordinate j of a candidate is Poisson distributed with mean rate_j.

    Args:
        mean: rates, shape (n,); positive.
        margin: the least rate; 1 / (2 n) by default.

    Example:
        >>> Poisson([2.0, 50.0]).candidates(np.array([[0.0, 0.0], [1.0, -1.0]]))
        array([[ 2., 50.],
               [ 3., 43.]])
    """

    name = "poisson"
    separable = True

    def __init__(self, mean: ArrayLike, margin: float | None = None) -> None:
        rates = check_vector("mean", mean, positive=True)
        self.margin = 0.5 / rates.size if margin is None else check_margin(margin, LARGEST)
        self._set(np.log(rates))

    @classmethod
    def start(cls, mean: Vector, deviation: Vector) -> Self:
        return cls(mean)

    def _set(self, natural: Vector) -> None:
        natural = np.clip(natural, np.log(max(self.margin, 1.0 / LARGEST)), np.log(LARGEST))
        self._freeze(np.exp(natural), natural, self.margin)

    def draw(self, noise: Matrix, out: Matrix, columns: slice = slice(None)) -> None:
        rates = self.mean[columns]
        out[:, 0] = _quantile(noise, rates)
        if out.shape[1] == 2:
            out[:, 1] = _quantile(-noise, rates)

    def mode(self) -> Vector:
        return np.floor(self.mean)

    def log_density(self, candidates: Matrix) -> Vector:
        x = np.atleast_2d(candidates)
        return np.asarray((x * self.natural - self.mean - gammaln(x + 1.0)).sum(axis=1))

    def tilted(self, change: Vector) -> Tilt:
        with np.errstate(over="ignore", invalid="ignore"):
            growth = np.exp(change)
            kl = np.where(change < -LARGEST, 1.0, change * growth - np.expm1(change))
            series = sum(factor * change**k for k, factor in enumerate(SERIES, 2))
            kl = self.mean * np.where(np.abs(change) < SMALL, series, kl)
            mean = self.mean * growth
            variance = np.where(growth == 0.0, 0.0, change * change * mean)
        return Tilt(float(np.where(np.isnan(kl), np.inf, kl).sum()), mean, float(variance.sum()))

    def covariance_times(self, direction: Vector) -> Vector:
        return self.mean * direction

    def precision_times(self, moment: Vector) -> Vector:
        return np.asarray(moment / self.mean)

    def whitened(self, moment: Vector) -> Vector:
        return np.asarray(moment / np.sqrt(self.mean))

    def standard_deviations(self) -> Vector:
        return np.sqrt(self.mean)

    def entropy(self) -> float:
        """Sums over the counts within twelve standard deviations of the mean."""
        return float(sum(_entropy(rate) for rate in self.mean))

    def state(self) -> dict[str, Any]:
        return {"natural": self.natural, "margin": self.margin}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        self = cls.__new__(cls)
        self.margin = check_margin(state["margin"], LARGEST)
        self._set(check_vector("natural", state["natural"]))
        return self


def _quantile(noise: Matrix, rates: Vector) -> Matrix:
    """The least count whose distribution function is at least that of the normal."""
    counts = np.empty_like(noise)
    for column, (rate, share) in enumerate(zip(rates, ndtr(noise).T, strict=True)):
        spread = math.sqrt(rate)
        if rate > TABLE_UP_TO:  # the third moment of a count is that of z + (z^2 - 1) / (6 sqrt(rate))
            z = noise[:, column]
            counts[:, column] = np.maximum(np.rint(rate + spread * z + (z * z - 1.0) / 6.0), 0.0)
            continue
        first = max(0, math.floor(rate - 10.0 * spread - 10.0))
        table = pdtr(np.arange(first, math.ceil(rate + 10.0 * spread + 30.0)), rate)
        counts[:, column] = first + np.searchsorted(table, np.minimum(share, table[-1]))
    return counts


def _entropy(rate: float) -> float:
    if rate > 1e4:  # Stirling's series
        return 0.5 * float(np.log(2.0 * np.pi * np.e * rate)) - 1.0 / (12.0 * rate) - 1.0 / (24.0 * rate**2)
    counts = np.arange(int(rate + 12.0 * np.sqrt(rate) + 40.0))
    logs = counts * np.log(rate) - rate - gammaln(counts + 1.0)
    return -float((np.exp(logs) * logs).sum())
