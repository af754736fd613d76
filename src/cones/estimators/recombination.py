r"""The estimate of CMA-ES, in which the worse candidates move the mean, too, with a smaller weight.

For x = mu + L z with z ~ N(0, I) and utilities u, negative for better candidates, in the frame of the belief:

    a = 1/N sum_i v_i z_i,     v_i = u_i if u_i < 0, else q u_i,     q = 1/2 n / (n + 20)
    B = 1/N sum_i u_i (z_i z_i^T - I) / 2

B is the score-function estimate. In CMA-ES q = 0: in few dimensions a bad direction says little about the opposite one.
In many dimensions it says as much, and optimal weights are symmetric (Arnold, Weighted multirecombination evolution
strategies, 2006); q = 1 would be the score function. The estimate is worth

    mu_eff = ( sum_i |v_i| )^2 / sum_i v_i^2

independent samples. With the shaping `recombination_weights` and q = 0 this is the weighted recombination of Hansen
(The CMA Evolution Strategy: A Tutorial, 2016).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cones.beliefs import FrameGradient, Gaussian
from cones.estimators.estimator import Estimate, Estimator, NoiseLevel, Sample
from cones.estimators.score_function import gaussian

__all__ = ["Recombination", "recombination"]

# q in many dimensions, and the dimension at which it is half of that.
WORSE, HALF_AT = 0.5, 20.0


@dataclass(frozen=True)
class Recombination(Estimator):
    """The mean's gradient mostly from the better candidates, the covariance's from all."""

    name = "recombination"
    beliefs = (Gaussian,)

    def estimate(self, state: None, sample: Sample) -> tuple[Estimate, None]:
        return recombination(sample), None


def recombination(sample: Sample) -> Estimate:
    """The estimate for a Gaussian belief from a population's noise and utilities."""
    belief, utilities, size = gaussian(sample.belief), sample.utilities, sample.utilities.size
    away = WORSE * belief.dim / (belief.dim + HALF_AT)
    centred = utilities - np.add.reduce(utilities) / size  # 0 but for raw losses
    weights = np.where(centred < 0.0, centred, away * centred)
    odd, _ = sample.plan.fold(weights / size)
    _, even = sample.plan.fold(utilities / size)
    mean, moment = belief.moments(sample.noise, odd, even)
    total = float(np.add.reduce(even))
    gradient = FrameGradient(mean, moment.map(lambda values: 0.5 * (values - total)))
    # The variance of a given the weights; with pairs, what both of a pair have in common cancels.
    squares, n, k = float(odd @ odd), belief.dim, belief.covariance_freedom
    of_mean, of_all = math.sqrt(squares), math.sqrt(float(utilities @ utilities)) / size
    noise = NoiseLevel(of_mean * math.sqrt(n), of_all * math.sqrt(0.5 * n), of_all * math.sqrt(0.5 * (k - 1)))
    samples = (float(np.add.reduce(np.abs(weights))) / size) ** 2 / squares if squares else float(size)
    return Estimate(gradient, noise, min(samples, float(size)))
