r"""The form of the Renyi family: what one axis adds to a divergence, and the best eigenvalue on it.

With the eigenvalue r of R on the axis,

    d'(r) = c/2 (r - 1) / (r (p + q r)),     d(1) = 0,     p + q = 1

At a slope t, the maximum of t (r - 1) / 2 - d(r) is at r = 2 c / (c - p t + w), w = sqrt( (c - p t)^2 - 4 c q t ).
See `cones.divergences.family`. The formulas keep r - 1, log r and d precise where they are small.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from cones.types import Vector

__all__ = ["Form", "log_ratio", "precision_of"]

# Below this |r - 1| and |q (r - 1)|, logarithms cancel and their series are used.
SMALL = 0.25
# log(1 + x) - x = -2 y^2 / (1 - y) + 2 y^3 (1/3 + y^2/5 + ...), y = x / (2 + x): the coefficients 1/3, 1/5, ...
SERIES = 1.0 / np.arange(3, 21, 2)


class Form(NamedTuple):
    """p, q and c of a divergence."""

    p: float
    q: float
    c: float

    @property
    def largest_t(self) -> float:
        """The end of t where the form is convex."""
        return self.c / (1.0 + math.sqrt(self.q)) ** 2 if self.q > 0.0 else math.inf

    @property
    def orders(self) -> tuple[float, float, float]:
        """The coefficients of t, t^2 and t^3 in r."""
        p, q, c = self
        first = 1.0 / c
        second = (p + 2.0 * q) * first / c
        return first, second, ((p + 2.0 * q) * second + q * first * first) / c

    def growth(self, t: Vector, rough: bool = False) -> tuple[Vector, Vector, Vector]:
        """r - 1, r and w for t up to `largest_t`; `rough` if rounding errors of 1e-16 in r - 1 do not matter."""
        p, q, c = self
        left: Any = c - p * t if p else c
        w = t * (-4.0 * c * q)
        w += left * left
        if q > 0.0:
            np.abs(w, out=w)  # negative by a rounding error at `largest_t`
        np.sqrt(w, out=w)
        below = left + w
        if q < 0.0 and float(np.min(left, initial=c)) < 0.5 * c:  # left + w may cancel
            apart = np.abs(left) + w
            below = np.where(left < 0.0, (-4.0 * c * q) * t / apart, apart)
        r = (2.0 * c) / below
        if rough:
            return r - 1.0, r, w
        right = 2.0 * c - left
        growth = (4.0 * c) * t / ((right + w) * below)
        if p and float(np.min(right, initial=c)) < 0.5 * c:
            growth = np.where(right < 0.0, (right - w) / below, growth)
        return growth, r, w

    def s(self, t: Vector, growth: Vector, r: Vector) -> Vector:
        """p + q r; near its zero, from d'(r) = t / 2."""
        s = 1.0 + self.q * growth
        if self.q < 0.0 and s.size and not float(s.min()) >= 0.5:
            near = np.flatnonzero(s < 0.5)
            s[near] = self.c * growth[near] / (t[near] * r[near])
        return np.asarray(s)

    def part(self, growth: Vector, r: Vector, s: Vector, log_r: Vector | None = None) -> Vector:
        """d(r); given log r, to rounding errors of the order of 1e-16 |r - 1|, and else of d(r)."""
        if log_r is not None:
            return np.asarray(0.5 * (log_ratio(s, self.q * growth) / self.q - log_r if self.p else log_r - growth / r))
        small = np.abs(growth) < SMALL / max(1.0, abs(self.q))
        if small.all():
            return self._small_part(growth)
        found = self.part(growth, r, s, log_ratio(r, growth))
        found[small] = self._small_part(growth[small])
        return found

    def _small_part(self, g: Vector) -> Vector:
        if self.p:
            return np.asarray(0.5 * (log1p_minus(self.q * g) / self.q - log1p_minus(g)))
        return np.asarray(0.5 * (log1p_minus(g) + g * g / (1.0 + g)))

    def part_of(self, r: float) -> float:
        """d(r) of one number far from 1."""
        growth, log_r = r - 1.0, math.log(r)
        return 0.5 * (math.log1p(self.q * growth) / self.q - log_r if self.p else log_r - growth / r)

    def farthest(self, level: float) -> float:
        """The largest r with d(r) <= level; inf beyond floats.

        Newton's method in log r, where d is convex: all iterates but the first are upper bounds.
        """
        log_r = math.log(1.0 + self.q**-0.5)
        for _ in range(20):
            r = math.exp(log_r)
            change = (level - self.part_of(r)) * 2.0 * (self.p + self.q * r) / (self.c * (r - 1.0))
            log_r += change
            if log_r > 700.0:
                return math.inf
            if abs(change) < 1e-12 * log_r:
                break
        return math.exp(log_r)


def precision_of(energy: float, size: int) -> tuple[bool, bool]:
    """True, if in a sum of d(r) rounding errors of each of the order of 1e-16 |r - 1|, or of 1e-16, do not matter."""
    return energy > 1e-8 * size, energy > 1e-3 * math.sqrt(size)


def log_ratio(r: Vector, growth: Vector) -> Vector:
    """log r, of numbers r = 1 + growth of which both are known without cancellation."""
    logs = np.log1p(growth)
    if growth.size and not float(growth.min()) >= -0.5:
        far = growth < -0.5
        logs[far] = np.log(r[far])
    return np.asarray(logs)


def log1p_minus(x: Vector) -> Vector:
    """log(1 + x) - x for small x, with full relative precision."""
    y = x / (2.0 + x)
    square = y * y
    largest = float(square.max(initial=1e-300))
    terms = min(SERIES.size, 1 + math.ceil(-38.0 / math.log(min(largest, 0.9))))  # the rest is below 1e-16
    series = np.full_like(y, SERIES[terms - 1])
    for coefficient in SERIES[: terms - 1][::-1]:
        series = series * square + coefficient
    return np.asarray(2.0 * square * (y * series - 1.0 / (1.0 - y)))
