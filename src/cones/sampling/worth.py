r"""What the result of an older belief is worth: weights in [0, 1] and noise in the frame of the current belief.

A candidate x was drawn from a belief with density p, and meanwhile the belief has density q. Its importance weight is
q(x) / p(x): with it, sums over old candidates have the expectations of sums over new ones. In many dimensions the
ratio varies over orders of magnitude, and an estimate rests on a few candidates. So it is cut off at 1 and flattened
(Shimodaira, Improving predictive inference under covariate shift, 2000):

    w = min(1, q(x) / p(x))^(1/2)                  z = L^-1 (x - mu), the frame of the current belief

A candidate of the current belief has w = 1 and its own noise. Where the belief has moved by many deviations, w is near
0: a gradient there says again what earlier results have said, and the length of the path would count it twice.

Where there is no density ratio:

    drawn through a transform of the noise         w = 1 / (1 + age), age in iterations
    not drawn by this run (a known evaluation)     w = 1, and z is cut off at the length sqrt(n) + 2 n / (n + 2)

The second is the injection of Hansen (Injecting external solutions into CMA-ES, 2011). Utilities u of a population with
weights w are centred again, u_i <- w_i (u_i - sum_j w_j u_j / sum_j w_j), so that a population of old results that are
all worse does not push the mean anywhere.
"""

from __future__ import annotations

import math

import numpy as np

from cones.beliefs import Gaussian
from cones.types import Matrix, Vector

__all__ = ["FOREIGN", "frame_noise", "weighted", "worths"]

FOREIGN = -1  # the iteration of a point that this run has not drawn


def worths(belief: Gaussian, points: Matrix, log_densities: Vector, drawn: Vector, iteration: int) -> Vector:
    """The weight of each result in an estimate for `belief`, the one of `iteration`.

    Args:
        points: candidates before they were reflected into bounds, one per row.
        log_densities: log p(x) of each by the belief that drew it; NaN if there is none.
        drawn: the iteration in which each was drawn, or FOREIGN.
    """
    weights = np.ones(len(points))
    old = (drawn != FOREIGN) & (drawn < iteration)
    by_age = old & np.isnan(log_densities)
    weights[by_age] = 1.0 / (1.0 + iteration - drawn[by_age])
    by_ratio = old & ~by_age
    if by_ratio.any():
        with np.errstate(over="ignore", invalid="ignore"):
            ratios = belief.log_density(points[by_ratio]) - log_densities[by_ratio]
        weights[by_ratio] = np.exp(0.5 * np.minimum(np.nan_to_num(ratios, nan=-math.inf), 0.0))
    return weights


def frame_noise(belief: Gaussian, points: Matrix, drawn: Vector) -> Matrix:
    """The noise of points in the frame of a belief; that of foreign ones is cut off."""
    noise = np.ascontiguousarray(belief.rows_to_frame(points), points.dtype)
    foreign = drawn == FOREIGN
    if foreign.any():
        n = belief.dim
        lengths = np.linalg.norm(noise[foreign], axis=1)
        longest = math.sqrt(n) + 2.0 * n / (n + 2.0)
        noise[foreign] *= np.minimum(1.0, longest / np.maximum(lengths, 1e-300))[:, None]
    return noise


def weighted(utilities: Vector, weights: Vector) -> Vector:
    """Utilities times weights, centred before if any weight is below 1."""
    if (weights == 1.0).all():
        return utilities
    return np.asarray(weights * (utilities - float(weights @ utilities) / float(weights.sum())))
