r"""The estimate of CMA-ES: the mean follows the better candidates, the covariance all of them.

For x = mu + L z with z ~ N(0, I) and utilities u, negative for better candidates, in the frame of the belief:

    a = 1/N sum_{u_i < 0} u_i z_i
    B = 1/N sum_i u_i (z_i z_i^T - I) / 2

B is the score-function estimate. In few dimensions the sum over the better candidates alone is the better estimate for
the mean: the worse ones tell where not to go, and not where to go. The estimate is worth

    mu_eff = ( sum_{u_i < 0} u_i )^2 / sum_{u_i < 0} u_i^2

independent samples. With the shaping `recombination_weights` this is the weighted recombination of Hansen (The CMA
Evolution Strategy: A Tutorial, 2016).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cones.beliefs import FrameGradient
from cones.estimators.estimator import Estimate, Estimator, NoiseLevel, Sample
from cones.estimators.score_function import gaussian

__all__ = ["Recombination", "recombination"]


@dataclass(frozen=True)
class Recombination(Estimator):
    """The mean's gradient from the better candidates, the covariance's from all."""

    name = "recombination"

    def estimate(self, state: None, sample: Sample) -> tuple[Estimate, None]:
        return recombination(sample), None


def recombination(sample: Sample) -> Estimate:
    """The estimate for a Gaussian belief from a population's noise and utilities."""
    belief, utilities, size = gaussian(sample.belief), sample.utilities, sample.utilities.size
    better = np.minimum(utilities, 0.0)
    odd, _ = sample.plan.fold(better / size)
    _, even = sample.plan.fold(utilities / size)
    mean, moment = belief.moments(sample.noise, odd, even)
    total = float(even.sum())
    gradient = FrameGradient(mean, moment.map(lambda values: 0.5 * (values - total)))
    # The variance of a given the weights; with pairs, what both of a pair have in common cancels.
    squares, n, k = float(odd @ odd), belief.dim, belief.covariance_freedom
    of_mean, of_all = math.sqrt(squares), math.sqrt(float(utilities @ utilities)) / size
    noise = NoiseLevel(of_mean * math.sqrt(n), of_all * math.sqrt(0.5 * n), of_all * math.sqrt(0.5 * (k - 1)))
    samples = (float(better.sum()) / size) ** 2 / squares if squares else float(size)
    return Estimate(gradient, noise, min(samples, float(size)))
