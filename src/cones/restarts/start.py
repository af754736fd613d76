"""Where a restart begins: the first belief, there or elsewhere."""

from __future__ import annotations

import numpy as np

from cones.beliefs import Belief, Gaussian, Product
from cones.restarts.axes import AxisSearch
from cones.restarts.policy import NextDescent
from cones.space.bounds import Box

__all__ = ["found_by", "generator", "start_of"]

# Tells the random numbers of restarts from those of candidates.
STREAM = 0x7E57A27
# Factor of the first deviations, at least.
NARROWEST = 1e-9


def generator(seed: int, number: int) -> np.random.Generator:
    """The random numbers of a restart; a checkpoint needs no state of a generator."""
    return np.random.default_rng((STREAM, number, seed))


def start_of(first: Belief, box: Box | None, descent: NextDescent, rng: np.random.Generator) -> Belief:
    """The initial belief of a restart.

    With `elsewhere` its mean is uniform in the box where both bounds are finite, and elsewhere a draw from the first
    belief, x0 + sigma0 z. Beliefs that are not Gaussian start anew as they are.
    """
    if isinstance(first, Product):
        boxes = [None if box is None else box.part(part) for part in first.slices]
        pairs = zip(first.factors, boxes, strict=True)
        return Product(*(start_of(factor, own, descent, rng) for factor, own in pairs))
    if not isinstance(first, Gaussian) or (not descent.elsewhere and descent.factor == 1.0):
        return first
    mean = first.mean
    if descent.elsewhere:
        noise = rng.standard_normal((1, first.dim)).astype(mean.dtype)
        mean = first.candidates(noise)[0]
        if box is not None:
            low, high = box.lower, box.upper
            with np.errstate(over="ignore"):
                finite = np.isfinite(high - low)
            uniform = rng.uniform(np.where(finite, low, 0.0), np.where(finite, high, 0.0))
            mean = box.reflect(np.where(finite, uniform, mean).astype(mean.dtype))
    return first.restarted(mean, descent.factor)


def found_by(search: AxisSearch, first: Gaussian) -> Gaussian:
    """The initial belief of a descent from the point that a search has found, as narrow as the search knows it."""
    deviations = first.standard_deviations()
    widths = np.where(search.low < search.high, 0.5 * search.widths(), deviations)
    return first.restarted(search.best(), 1.0).scaled(np.clip(widths / deviations, NARROWEST, 1.0))
