"""From a space to the belief that a run starts with.

Numbers are Gaussian, flags Bernoulli, choices categorical; the belief is their product. A space of numbers alone is a
vector within bounds, as any other. Beside flags and choices, real numbers and integers have a Gaussian each: their
scales differ by many orders of magnitude once the integers are found, and fewer covariances are learnt faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cones.beliefs import Belief, Bernoulli, Categorical, DiagonalGaussian, FullGaussian, Product
from cones.beliefs.families.family import default_margin
from cones.checks import check_one_of, check_positive
from cones.defaults import FULL_UP_TO
from cones.space.bounds import Box
from cones.space.space import Space
from cones.types import Vector

__all__ = ["start_in"]

SHARE = 0.25  # standard deviations of numbers, as a share of their ranges


def start_in(space: Space, sigma0: Any, kind: str | None = None) -> tuple[Vector | Belief, Vector | None, Box]:
    """x0 and sigma0 of a run in a space, and its box.

    `sigma0` is a share of the ranges of the numbers, and `kind` the name of their Gaussian in a product.
    """
    share = SHARE if sigma0 is None else check_positive("sigma0", sigma0)
    trust = max(0.0, 1.0 - 2.0 * share)  # what a guess of a flag or a choice adds to its probability
    box, (x, chosen) = space.box(), space.start()
    part = slice(0, space.numbers)
    width = box.upper[part] - box.lower[part]
    deviations = np.where(np.isfinite(width), share * width, share / SHARE)
    if space.numbers == space.dim:
        return box.clip(x), deviations, box
    # Beside numbers, a deviation costs what the candidate could tell about them.
    margin = default_margin(space.flags + len(space.choices)) if space.numbers or space.choices else None
    factors: list[Belief] = []
    for own in (slice(0, space.floats), slice(space.floats, space.numbers)):
        if count := own.stop - own.start:
            kinds = {"full": FullGaussian, "diagonal": DiagonalGaussian}
            name = check_one_of("belief", kind or ("full" if count <= FULL_UP_TO else "diagonal"), tuple(kinds))
            factors.append(kinds[name].start(box.clip(x)[own], deviations[own]))
    end = space.numbers + space.flags
    if space.flags:
        guess, given = x[space.numbers : end], chosen[space.numbers : end]
        factors.append(Bernoulli(np.where(given, 0.5 + trust * (guess - 0.5), 0.5), margin))
    if space.choices:
        parts = []
        for count in space.choices:
            even = np.full(count, 1.0 / count)
            mine = slice(end, end + count)
            parts.append((1.0 - trust) * even + trust * x[mine] if chosen[mine].all() else even)
            end += count
        factors.append(Categorical(*parts, margin=margin))
    return factors[0] if len(factors) == 1 else Product(*factors), None, box
