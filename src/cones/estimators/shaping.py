"""Shaping: losses to utilities. Low losses get low utilities.

NaN ranks as the worst loss. Non-finite losses never reach the gradient: ranks ignore magnitudes, and `standardised` and
`raw` replace NaN and +inf by the worst finite loss, -inf by the best.

A custom function takes the losses, shape (popsize,), and returns finite utilities of the same shape. A checkpoint can
only store it if it is defined at the top level of a module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from cones.checks import check_array
from cones.component import Storable, identifier, imported, suggestion
from cones.errors import InputError
from cones.types import Vector

__all__ = [
    "SHAPINGS",
    "Shaping",
    "centred_ranks",
    "normal_scores",
    "raw",
    "recombination_weights",
    "shaping_from",
    "standardised",
]


def _ordered(losses: Vector) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The sorting order of the losses, NaN last, and which sorted losses differ from the one before."""
    order = np.argsort(losses)
    ordered = losses[order]
    differs = ordered[1:] != ordered[:-1]
    if np.isnan(ordered[-1]):  # NaNs are ties, although NaN != NaN
        differs &= ~np.isnan(ordered[:-1])
    return order, differs


def _ranks(losses: Vector) -> Vector:
    """Ranks from 0. Ties share their mean rank; NaN ranks last."""
    order, differs = _ordered(losses)
    ranks = np.arange(losses.size, dtype=np.float64)
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
    order, differs = _ordered(losses)
    if differs.all():
        scores = np.empty(losses.size)
        scores[order] = _scores_without_ties(losses.size)
        return scores
    return _unit_variance(ndtri((_ranks(losses) + 0.5) / losses.size))


@lru_cache(maxsize=8)
def _scores_without_ties(size: int) -> Vector:
    return _unit_variance(ndtri((np.arange(size) + 0.5) / size))


def _unit_variance(scores: Vector) -> Vector:
    size = float(np.sqrt(np.mean(scores**2)))
    return np.asarray(scores / size if size > 0.0 else scores)


def recombination_weights(losses: Vector) -> Vector:
    """The negative weights of CMA-ES (Hansen, 2016): log((N + 1) / 2) - log(rank), with ranks from 1.

    The positive weights, of the better half, sum to 1. The negative ones sum to -1. Ties share their mean weight.

    Example:
        >>> recombination_weights(np.array([1.0, 4.0, 2.0, 3.0])).round(4)
        array([-0.8042,  0.7205, -0.1958,  0.2795])
    """
    order, differs = _ordered(losses)
    weights = _sorted_weights(losses.size)
    if not differs.all():
        groups = np.concatenate([[0], np.cumsum(differs)])
        weights = (np.bincount(groups, weights) / np.bincount(groups))[groups]
        if groups[-1] == 0:  # all tied
            weights = np.zeros_like(weights)
    utilities = np.empty(losses.size)
    utilities[order] = weights
    return utilities


@lru_cache(maxsize=8)
def _sorted_weights(size: int) -> Vector:
    weights = np.log(np.arange(1, size + 1)) - np.log((size + 1) / 2)
    better, worse = weights < 0.0, weights > 0.0
    weights[better] /= -weights[better].sum()
    weights[worse] /= weights[worse].sum()
    return np.asarray(weights)


def standardised(losses: Vector) -> Vector:
    """(losses - mean) / standard deviation.

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
    # A smaller deviation is rounding error of equal losses.
    return centred / deviation if deviation > 1e-14 else np.zeros_like(losses)


def raw(losses: Vector) -> Vector:
    """The losses, with non-finite ones replaced.

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
    "recombination_weights": recombination_weights,
}


@dataclass(frozen=True)
class Shaping(Storable):
    """A shaping function: the name of one in `SHAPINGS`, or a custom function."""

    function: str | Callable[[Vector], Any]

    def __post_init__(self) -> None:
        if not callable(self.function) and self.function not in SHAPINGS:
            raise InputError(f"shaping: expected one of {', '.join(map(repr, SHAPINGS))}, got {self.function!r}")

    def __call__(self, losses: Vector) -> Vector:
        if isinstance(self.function, str):
            return SHAPINGS[self.function](losses)
        utilities = check_array("utilities", self.function(losses.copy()))
        if utilities.shape != losses.shape or not np.isfinite(utilities).all():
            raise InputError(f"shaping: expected {losses.size} finite utilities from {self}, got {utilities!r:.80}")
        return utilities

    def __str__(self) -> str:
        return self.function if isinstance(self.function, str) else identifier(self.function)


def shaping_from(value: Any) -> Shaping:
    """The shaping for a user's argument: a name, "module:function", or a function."""
    if isinstance(value, Shaping):
        return value
    if isinstance(value, str) and ":" in value:
        value = imported(value, "shaping")
    if callable(value):
        return Shaping(value)
    if not isinstance(value, str) or value not in SHAPINGS:
        names = ", ".join(map(repr, SHAPINGS))
        raise InputError(
            f"shaping: expected one of {names}, 'module:function' or a function, got {value!r}"
            f"{suggestion(value, SHAPINGS)}"
        )
    return Shaping(str(value))
