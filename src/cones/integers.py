r"""Integers are Gaussians that are rounded; their spread has a lower bound, so that a neighbour keeps a probability.

From the middle of a cell of width w, a candidate lands in a neighbouring cell with probability 2 Phi(-w / (2 sigma)).
The bound on sigma keeps it at 1 / (number of coordinates * popsize) or more: once per n iterations or so a
coordinate's neighbour is tried. (Hamano et al., CMA-ES with Margin, 2022, correct the mean as well.)
"""

from __future__ import annotations

from scipy.special import ndtri

from cones.beliefs import Belief, Gaussian, Product
from cones.space.bounds import Box

__all__ = ["with_neighbours"]


def with_neighbours(belief: Belief, box: Box | None, popsize: int) -> Belief:
    """The belief, wide enough that integer coordinates keep moving."""
    if box is None or box.whole is None or not isinstance(belief, Gaussian | Product):
        return belief
    probability = 1.0 / (belief.dim * popsize)
    return belief.widened(box.cells(belief.mean) / (-2.0 * float(ndtri(0.5 * probability))))
