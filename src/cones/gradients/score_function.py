r"""The score-function estimate of the gradient of the expected loss.

For x = mu + L z with z ~ N(0, I) and utilities u, in the frame of the belief:

    a = 1/N sum_i u_i z_i                  estimates L^T dl/dmu
    B = 1/N sum_i u_i (z_i z_i^T - I) / 2  estimates L^T (dl/dSigma) L

(Wierstra et al., Natural Evolution Strategies, JMLR 2014.) A diagonal belief keeps the diagonal of B.
"""

from __future__ import annotations

from cones.beliefs.belief import Belief, FrameGradient
from cones.noise.seeded import Noise
from cones.types import Matrix, Vector

__all__ = ["score_function"]


def score_function(belief: Belief, noise: Noise, rows: Matrix, utilities: Vector) -> FrameGradient:
    """The estimate from the rows of noise behind a population and the population's utilities.

    Args:
        belief: the belief the population was drawn from; it decides how much of B is kept.
        noise: says how rows of noise became candidates.
        rows: what `noise.draw` gave, shape (noise.rows, n).
        utilities: shape (popsize,).
    """
    size = utilities.size
    odd, even = noise.fold(utilities / size)
    moment = belief.second_moment(rows, even)
    total = float(even.sum())
    return FrameGradient(odd @ rows, moment.map(lambda values: 0.5 * (values - total)))
