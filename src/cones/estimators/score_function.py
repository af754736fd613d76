r"""The score-function estimate of the gradient of the expected loss.

For x = mu + L z with z ~ N(0, I) and utilities u, in the frame of the belief:

    a = 1/N sum_i u_i z_i                  estimates L^T dl/dmu
    B = 1/N sum_i u_i (z_i z_i^T - I) / 2  estimates L^T (dl/dSigma) L

(Wierstra et al., Natural Evolution Strategies, JMLR 2014.) A diagonal belief keeps the diagonal of B.
"""

from __future__ import annotations

from cones.beliefs.belief import Belief, FrameGradient
from cones.kernels.spans import for_each_span
from cones.sampling.block import Rows
from cones.types import Vector

__all__ = ["score_function"]


def score_function(belief: Belief, rows: Rows, utilities: Vector) -> FrameGradient:
    """The estimate from the rows of noise behind a population and the population's utilities.

    Args:
        belief: the belief the population was drawn from; it decides how much of B is kept.
        rows: the noise of the iteration.
        utilities: shape (popsize,).
    """
    odd, even = rows.noise.fold(utilities / utilities.size)
    mean, moment = belief.moments(rows, odd, even)
    total = float(even.sum())

    def centred(values: Vector) -> Vector:
        def work(part: slice) -> None:
            values[part] -= total
            values[part] *= 0.5

        for_each_span(work, values.size)
        return values

    return FrameGradient(mean, moment.map(centred))
