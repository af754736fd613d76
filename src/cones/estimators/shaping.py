"""Shaping: losses to utilities. Low losses get low utilities; the pipeline descends.

NaN is the worst loss. Non-finite losses never reach the gradient: ranks do not see their size, and
`standardised` and `raw` put the worst finite loss in place of NaN and +inf, the best in place of -inf.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from cones.types import Vector

__all__ = ["SHAPINGS", "centred_ranks", "normal_scores", "raw", "standardised"]


def _ranks(losses: Vector) -> Vector:
    """Ranks from 0, ties sharing their mean rank, NaN last."""
    order = np.argsort(losses)
    ordered = losses[order]
    ranks = np.arange(losses.size, dtype=np.float64)
    differs = ordered[1:] != ordered[:-1]
    if np.isnan(ordered[-1]):  # NaNs, which differ from each other, are last
        differs &= ~np.isnan(ordered[:-1])
    if not differs.all():
        groups = np.concatenate([[0], np.cumsum(differs)])
        ranks = (np.bincount(groups, ranks) / np.bincount(groups))[groups]
    unsorted = np.empty_like(ranks)
    unsorted[order] = ranks
    return unsorted


def centred_ranks(losses: Vector) -> Vector:
    """Ranks scaled to [-1/2, 1/2] (Salimans et al., 2017).

    Example:
        >>> centred_ranks(np.array([10.0, 0.0, np.nan]))
        array([ 0. , -0.5,  0.5])
    """
    return _ranks(losses) / max(losses.size - 1, 1) - 0.5


def normal_scores(losses: Vector) -> Vector:
    """Normal quantiles of the ranks, scaled to unit variance.

    Example:
        >>> normal_scores(np.array([1.0, 3.0, 2.0])).round(4)
        array([-1.2247,  1.2247,  0.    ])
    """
    scores = ndtri((_ranks(losses) + 0.5) / losses.size)
    size = float(np.sqrt(np.mean(scores**2)))
    return np.asarray(scores / size if size > 0.0 else scores)


def standardised(losses: Vector) -> Vector:
    """Losses minus their mean, over their standard deviation.

    Example:
        >>> standardised(np.array([1.0, 3.0]))
        array([-1.,  1.])
    """
    finite = _made_finite(losses)
    largest = float(np.abs(finite).max(initial=0.0))
    if largest == 0.0:
        return np.zeros_like(losses)
    finite = finite / largest  # so that squares cannot overflow
    centred = finite - finite.mean()
    deviation = float(np.sqrt(np.mean(centred**2)))
    # Equal losses differ by rounding only.
    return centred / deviation if deviation > 1e-14 else np.zeros_like(losses)


def raw(losses: Vector) -> Vector:
    """The losses themselves.

    Example:
        >>> raw(np.array([1.0, np.inf, 3.0]))
        array([1., 3., 3.])
    """
    return _made_finite(losses)


def _made_finite(losses: Vector) -> Vector:
    finite = losses[np.isfinite(losses)]
    if finite.size == losses.size:
        return losses
    if finite.size == 0:
        return np.zeros_like(losses)
    worst, best = float(finite.max()), float(finite.min())
    return np.nan_to_num(losses, nan=worst, posinf=worst, neginf=best)


SHAPINGS: dict[str, Callable[[Vector], Vector]] = {
    "centred_ranks": centred_ranks,
    "normal_scores": normal_scores,
    "standardised": standardised,
    "raw": raw,
}
