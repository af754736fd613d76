"""How many candidates an iteration has where evaluations come one at a time, and in hundreds."""

from __future__ import annotations

import math

__all__ = ["small_popsize"]


def small_popsize(dim: int) -> int:
    """4 + 3 log(dim), as CMA-ES has it, made even for pairs: 100 would spend a small budget before the first step.

    Example:
        >>> small_popsize(2), small_popsize(20)
        (6, 12)
    """
    size = 4 + int(3 * math.log(dim))
    return size + size % 2
