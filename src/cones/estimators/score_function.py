r"""The score-function estimate of the gradient of the expected loss.

For x = mu + L z with z ~ N(0, I) and utilities u, in the frame of the belief:

    a = 1/N sum_i u_i z_i                  estimates L^T dl/dmu
    B = 1/N sum_i u_i (z_i z_i^T - I) / 2  estimates L^T (dl/dSigma) L

(Wierstra et al., Natural Evolution Strategies, JMLR 2014.) A diagonal belief keeps the diagonal of B. If u is
independent of z, the mean squares of |a|, tr B and |B - (tr B / n) I| are u^2 n / N, u^2 n / (2 N) and
u^2 (k - 1) / (2 N), where u^2 is the mean square of the utilities and k the degrees of freedom of B.

For an exponential family the score of the natural parameters is x - mean, and the gradient in the mean parameters is

    g = Cov(x)^-1 1/N sum_i u_i (x_i - mean)

The estimate of a product is that of its factors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cones.beliefs import Belief, ExponentialFamily, FamilyGradient, FrameGradient, Gaussian, Product
from cones.errors import InputError
from cones.estimators.estimator import Estimate, Estimator, NoiseLevel, Sample
from cones.types import Matrix, Vector

__all__ = ["ScoreFunction", "family_score", "noise_level", "score_function"]


@dataclass(frozen=True)
class ScoreFunction(Estimator):
    """The sum of utilities times scores: unbiased, stateless."""

    name = "score_function"

    def estimate(self, state: None, sample: Sample) -> tuple[Estimate, None]:
        return score_function(sample), None


def score_function(sample: Sample) -> Estimate:
    """The estimate from a population's noise and utilities."""
    if isinstance(sample.belief, Product):
        return Estimate.joined([score_function(factor) for factor in sample.factors()])
    if isinstance(sample.belief, ExponentialFamily):
        return family_score(sample.belief, sample.candidates(), sample.utilities)
    belief, utilities = gaussian(sample.belief), sample.utilities
    odd, even = sample.plan.fold(utilities / utilities.size)
    mean, moment = belief.moments(sample.noise, odd, even)
    total = float(even.sum())
    gradient = FrameGradient(mean, moment.map(lambda values: 0.5 * (values - total)))
    return Estimate(gradient, noise_level(belief, utilities), utilities.size)


def noise_level(belief: Gaussian, utilities: Vector) -> NoiseLevel:
    """The noise level of the estimate for these utilities."""
    unit, n, k = math.sqrt(float(utilities @ utilities)) / utilities.size, belief.dim, belief.covariance_freedom
    return NoiseLevel(unit * math.sqrt(n), unit * math.sqrt(0.5 * n), unit * math.sqrt(0.5 * (k - 1)))


def family_score(belief: ExponentialFamily, candidates: Matrix, utilities: Vector) -> Estimate:
    """The estimate for an exponential family. Its noise is that of Cov(x)^1/2 g."""
    moment = (utilities / utilities.size) @ (candidates - belief.mean)
    unit = math.sqrt(float(utilities @ utilities)) / utilities.size
    gradient = FamilyGradient(belief.precision_times(moment), belief)
    return Estimate(gradient, NoiseLevel(unit * math.sqrt(belief.freedom)), utilities.size)


def gaussian(belief: Belief) -> Gaussian:
    """The belief, if it is a Gaussian; otherwise an error."""
    if not isinstance(belief, Gaussian):
        raise InputError(f"estimator: expected one for {type(belief).__name__}, got one for Gaussian beliefs")
    return belief
