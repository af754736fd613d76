r"""The score-function estimate from the best directions only, as in augmented random search (ARS).

Of R pairs those count whose better utility is among the lowest, b = share R of them. Single candidates all count: the
best of them alone would bias the covariance. With the utilities u of these N candidates, centred at their mean,

    a = 1/N sum_i u_i z_i                  B = 1/N sum_i u_i (z_i z_i^T - I) / 2

For pairs a is 1/(2 b) sum (u_i+ - u_i-) z_i: with raw losses, the direction of ARS. A direction with two bad candidates
says little about where to go. share = 1 is the score function. Given the utilities, the mean squares of |a|, tr B and
|B - (tr B / n) I| under noise follow from the weights of the rows of noise, o_i = u_i+ - u_i- and e_i = u_i+ + u_i-:

    n sum o^2 / N^2,      n/2 sum e^2 / N^2,      (k - 1)/2 sum e^2 / N^2

Reference: Mania, Guy & Recht, Simple Random Search of Static Linear Policies is Competitive for Reinforcement Learning,
NeurIPS 2018.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cones.beliefs import FrameGradient, Gaussian
from cones.checks import check_fraction, check_positive
from cones.component import setting
from cones.estimators.estimator import Estimate, Estimator, NoiseLevel, Sample
from cones.estimators.score_function import gaussian
from cones.types import Matrix, Vector

__all__ = ["BestDirections"]


@dataclass(frozen=True)
class BestDirections(Estimator):
    """The score-function estimate from the directions with the best candidates."""

    name = "best_directions"
    beliefs = (Gaussian,)

    share: float = setting(1.0, "Share of the directions that count, in (0, 1].")

    def __post_init__(self) -> None:
        if check_positive("share", self.share) != 1.0:
            check_fraction("share", self.share)

    def estimate(self, state: None, sample: Sample) -> tuple[Estimate, None]:
        belief, plan = gaussian(sample.belief), sample.plan
        kept = max(1, round(self.share * plan.rows)) if plan.mirrored else plan.rows
        size = kept * plan.per_row
        weights = _of_best(sample.utilities.reshape(plan.rows, plan.per_row), kept)
        odd, even = plan.fold(weights / size)
        mean, moment = belief.moments(sample.noise, odd, even)
        total = float(even.sum())
        gradient = FrameGradient(mean, moment.map(lambda values: 0.5 * (values - total)))
        n, k = belief.dim, belief.covariance_freedom
        of_mean, of_all = math.sqrt(float(odd @ odd)), math.sqrt(0.5 * float(even @ even))
        noise = NoiseLevel(of_mean * math.sqrt(n), of_all * math.sqrt(n), of_all * math.sqrt(k - 1))
        return Estimate(gradient, noise, size), None


def _of_best(utilities: Matrix, kept: int) -> Vector:
    """The utilities of the best rows, centred; 0 for the others."""
    best = np.argsort(utilities.min(axis=1), kind="stable")[:kept]
    weights = np.zeros_like(utilities)
    weights[best] = utilities[best] - utilities[best].mean()
    return weights.reshape(-1)
