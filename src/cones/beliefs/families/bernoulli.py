r"""Independent bits.

With p the probability of a one and d a change of eta = log(p / (1 - p)),

    KL = d p' - log(1 + p (e^d - 1)),     Var(x) = p (1 - p)
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, logit, ndtri

from cones.beliefs.families.family import ExponentialFamily, Tilt, check_margin, default_margin
from cones.checks import check_array, check_number, check_shape, check_vector
from cones.errors import InputError
from cones.types import Matrix, Vector

__all__ = ["Bernoulli"]

# The share of candidates without a rare bit where all bits are nearly certain. With 0.73, OneMax and LeadingOnes of 100
# bits take 1.3 and 1.2 times the evaluations, and a knapsack ends at a loss 1.3 times as high.
NONE_DEVIATES = 0.5
# Without a margin, p and 1 - p stay above e^-LARGEST.
LARGEST = 700.0


class Bernoulli(ExponentialFamily):
    """Independent bits: coordinate j of a candidate is 1 with probability mean_j, and 0 otherwise.

    Args:
        mean: probabilities, shape (n,), between 0 and 1.
        margin: the least probability of either value; by default half of the candidates of a belief that is nearly
            certain deviate in some bit.

    Example:
        >>> belief = Bernoulli([0.5, 0.9], margin=0.01)
        >>> belief.candidates(np.array([[0.3, 0.3], [-0.3, 2.0]]))
        array([[0., 1.],
               [1., 0.]])
        >>> round(belief.entropy(), 4)
        1.0182
    """

    name = "bernoulli"
    separable = True

    def __init__(self, mean: ArrayLike, margin: float | None = None) -> None:
        probabilities = check_vector("mean", mean)
        bad = (probabilities < 0.0) | (probabilities > 1.0)
        if bad.any():
            index = int(bad.argmax())
            raise InputError(f"mean: expected probabilities, got {probabilities[index]} at index {index}")
        self.margin = default_margin(probabilities.size, NONE_DEVIATES) if margin is None else check_margin(margin, 0.5)
        self._set(logit(probabilities))

    @classmethod
    def start(cls, mean: Vector, deviation: Vector) -> Self:
        return cls(mean)

    def _set(self, natural: Vector) -> None:
        edge = min(LARGEST, float(logit(1.0 - self.margin)))
        natural = np.clip(natural, -edge, edge)
        self._freeze(expit(natural), natural, self.margin)
        self._threshold: Vector = ndtri(self.mean)
        self._threshold.flags.writeable = False

    def draw(self, noise: Matrix, out: Matrix, columns: slice = slice(None)) -> None:
        threshold = self._threshold[columns]
        out[:, 0] = noise < threshold
        if out.shape[1] == 2:
            out[:, 1] = -noise < threshold

    def mode(self) -> Vector:
        return np.asarray(self.mean > 0.5, np.float64)

    def log_density(self, candidates: Matrix) -> Vector:
        ones = np.atleast_2d(candidates) > 0.5
        return np.asarray(np.where(ones, log_expit(self.natural), log_expit(-self.natural)).sum(axis=1))

    def tilted(self, change: Vector) -> Tilt:
        # The sign is chosen so that the exponential does not overflow.
        up, size = change > 0.0, np.abs(change)
        p = np.where(up, expit(-self.natural), self.mean)  # of the value that becomes less likely
        mean = expit(self.natural + change)
        less = np.where(up, expit(-self.natural - change), mean)
        kl = -size * less - np.log1p(p * np.expm1(-size))
        variance = change * change * mean * expit(-self.natural - change)
        return Tilt(float(kl.sum()), mean, float(variance.sum()))

    def _variance(self) -> Vector:
        return np.asarray(self.mean * expit(-self.natural))

    def covariance_times(self, direction: Vector) -> Vector:
        return self._variance() * direction

    def precision_times(self, moment: Vector) -> Vector:
        return np.asarray(moment / self._variance())

    def whitened(self, moment: Vector) -> Vector:
        return np.asarray(moment / self.standard_deviations())

    def standard_deviations(self) -> Vector:
        return np.sqrt(self._variance())

    def entropy(self) -> float:
        logs = self.mean * log_expit(self.natural) + expit(-self.natural) * log_expit(-self.natural)
        return -float(logs.sum())

    def state(self) -> dict[str, Any]:
        return {"natural": self.natural, "margin": self.margin}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        natural = check_array("natural", state["natural"])
        check_shape("natural", natural, (natural.size,))
        self = cls.__new__(cls)
        self.margin = check_margin(check_number("margin", state["margin"]), 0.5)
        self._set(check_vector("natural", natural))
        return self
