r"""Integers are rounded Gaussians. Their spread has a lower bound, so that the next integer stays within reach.

From the middle of a cell of width w, a candidate lands in a neighbouring cell with probability 2 Phi(-w / (2 sigma)).
The bound on sigma keeps it at 1 / (number of coordinates * popsize) or more: once per n iterations or so a
coordinate's neighbour is tried. (Hamano et al., CMA-ES with Margin, 2022, correct the mean as well.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from cones.beliefs import Belief, Gaussian, Product
from cones.space.bounds import Box
from cones.types import Matrix

Mask = NDArray[np.bool_]

__all__ = ["at_mode", "spread_of_numbers", "with_neighbours"]


def with_neighbours(belief: Belief, box: Box | None, popsize: int) -> Belief:
    """The belief, wide enough that integer coordinates keep moving."""
    if box is None or box.whole is None or not isinstance(belief, Gaussian | Product):
        return belief
    probability = 1.0 / (belief.dim * popsize)
    return belief.widened(box.cells(belief.mean) / (-2.0 * float(ndtri(0.5 * probability))))


def spread_of_numbers(belief: Belief, box: Box | None) -> float | None:
    """The largest standard deviation of a real number, beside integers, bits or categories, whose spread has a bound.

    A deviation of which a fifth does not change the mean is 0. None if all coordinates are real numbers, or none is.
    """
    real = _real_numbers(belief, box)
    if real is None or not real.any():
        return None
    mean, deviations = belief.mean[real], belief.standard_deviations()[real]
    return float(np.where(deviations <= 2.5 * np.finfo(mean.dtype).eps * np.abs(mean), 0.0, deviations).max())


def at_mode(candidates: Matrix, belief: Belief, box: Box | None) -> Mask | None:
    """Which candidates have the most likely integers, bits and categories; None if there are no others, or no numbers.

    They differ in their real numbers alone.
    """
    real = _real_numbers(belief, box)
    if real is None or real.all() or not real.any():
        return None
    mode = belief.mode() if box is None else box.reflect(belief.mode())
    return np.asarray((candidates[:, ~real] == mode[~real]).all(axis=1))


def _real_numbers(belief: Belief, box: Box | None) -> Mask | None:
    """Which coordinates are real numbers; None if all are."""
    whole = None if box is None else box.whole
    if isinstance(belief, Gaussian):
        return None if whole is None else whole == 0
    factors = belief.factors if isinstance(belief, Product) else (belief,)
    real = np.concatenate([np.full(factor.dim, isinstance(factor, Gaussian)) for factor in factors])
    return real if whole is None else real & (whole == 0)
