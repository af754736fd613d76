r"""A search along the coordinate axes, for losses whose coordinates can be minimised one by one.

**The test.** A loss is separable if the better of two values of a coordinate is better whatever the others are. Two
points u and v are drawn from the first belief; (u, v_i) is u with coordinate i of v. For each i,

    f(u, v_i) - f(u)     and     f(v) - f(v, u_i)

have the same sign if f is separable, and else in about half of the cases. The search ends at the first sign that
differs, for most other losses after 2 n + 2 evaluations. It begins after 20 signs that agree.

**The search.** Along each axis through the best candidate so far, values are sampled within four deviations of the
first belief. The next one halves the interval in which the flattest parabola would get below the lowest loss by eps:

    a = ( sqrt(f_1 - f_min + eps) + sqrt(f_2 - f_min + eps) )^2 / (x_2 - x_1)^2           (smallest over the intervals)

(STEP, Swarzberg, Seront & Bersini, 1994). An axis is done when that parabola is four times as curved as the sharpest
that its values show: a divided second difference. A round ends when all axes are done, or when the best value of no
axis has jumped over another one during the last third of the values. A candidate with the best value of every axis is
evaluated each time. When it is worse than the best one before, the loss is not separable, and the search ends.

A descent from the best values follows, as narrow as the intervals around them, and then another round with at least
twice the values, until a round finds nothing better.

Line searches beside CMA-ES, also with STEP, are part of HCMA (Loshchilov, Schoenauer & Sebag, 2013).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cones.beliefs import Gaussian
from cones.checks import check_shape
from cones.component import Storable
from cones.errors import InputError
from cones.space.bounds import Box
from cones.types import Matrix, Vector

__all__ = ["AxisSearch"]

IntVector = NDArray[np.int64]

# Signs to compare before the search begins.
SIGNS = 20
# Half of the width of an axis, in deviations of the first belief.
WIDTH = 4.0
# Values on an axis at first, beside that of the best candidate, before the axis can be done, and in the first round.
GRID, LEAST, ROUND = 6, 16, 40
# eps, as a share of the median loss above the lowest.
GAIN = 1e-5
# An axis is done at this many times the sharpest curvature seen.
SHARPER = 4.0
# A round ends at this many times the values after which a best one has last jumped.
PATIENCE = 1.5
# Differences within this share of the losses are rounding.
ROUNDING = 1e-12


@dataclass(frozen=True)
class AxisSearch(Storable):
    """What a search along the axes knows. Each population of candidates replaces it.

    Attributes:
        base: the point that the axes go through.
        low, high: the ends of the axes.
        pairs: points whose coordinates are exchanged, shape (pairs, 2, n); those that are left.
        axis, position, loss: the evaluated values: of which axis, where, and how good.
        live: the axes that are not done.
        jumped: for each axis, the number of values after which the best one last jumped over another one.
        joint: the lowest loss of a candidate that has the best value of every axis.
        before: that of earlier rounds.
        least: values per axis before the round can end.
        ended: True if there is nothing left to ask for.
    """

    base: Vector
    low: Vector
    high: Vector
    pairs: Matrix
    axis: IntVector
    position: Vector
    loss: Vector
    live: NDArray[np.bool_]
    jumped: IntVector
    joint: float
    before: float
    least: int = ROUND
    ended: bool = False

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> AxisSearch:
        search = cls(**parts)
        n, values = search.base.size, search.axis.size
        for name in ("base", "low", "high", "live", "jumped"):
            check_shape(name, getattr(search, name), (n,))
        for name in ("axis", "position", "loss"):
            check_shape(name, getattr(search, name), (values,))
        check_shape("pairs", search.pairs, (len(search.pairs), 2, n))
        if set(search.axis.tolist()) != set(range(n)):
            raise InputError(f"axis: expected numbers from 0 to {n - 1}, got others")
        return search

    @classmethod
    def start(cls, base: Vector, loss: float, first: Gaussian, box: Box | None, rng: np.random.Generator) -> AxisSearch:
        """A search through a point with a known loss, over the range of the first belief."""
        n, width = base.size, WIDTH * first.standard_deviations()
        low, high = base - width, base + width
        count = -(-SIGNS // n) if n > 1 else 0  # pairs; one coordinate is always separable
        pairs = first.candidates(rng.standard_normal((2 * count, n)))
        if box is not None:
            low, high, pairs = np.maximum(low, box.lower), np.minimum(high, box.upper), box.reflect(pairs)
        every = np.arange(n, dtype=np.int64)
        return cls(
            base=base,
            low=low,
            high=high,
            pairs=pairs.reshape(-1, 2, n),
            axis=every,
            position=base.copy(),
            loss=np.full(n, loss),
            live=low < high,
            jumped=np.ones(n, dtype=np.int64),
            joint=loss,
            before=loss,
        )

    def next_round(self) -> AxisSearch:
        """The search with at least twice the values per axis."""
        return replace(self, before=self.joint, least=2 * self._count(), ended=not self.live.any())

    @property
    def popsize(self) -> int:
        """Candidates of the next population."""
        if len(self.pairs):
            return 2 * self.base.size + 2
        return self._next_axes().size + (not self._is_new())

    @property
    def found(self) -> bool:
        """True if this round has found a better point."""
        return not len(self.pairs) and self.joint < self.before

    def candidates(self) -> Matrix:
        """The next population."""
        if len(self.pairs):
            u, v = self.pairs[0]
            own = np.eye(u.size, dtype=bool)
            return np.concatenate([[u, v], np.where(own, v, u), np.where(own, u, v)])
        axes = self._next_axes()
        rows = np.repeat(self.base[None, :], axes.size, axis=0)
        rows[np.arange(axes.size), axes] = self._next_positions()
        return rows if self._is_new() else np.concatenate([rows, self.best()[None, :]])

    def told(self, losses: Vector) -> AxisSearch:
        """The search after the losses of its candidates."""
        losses = np.where(np.isnan(losses), np.inf, losses)
        if len(self.pairs):
            return self._tested(losses)
        axes = self._next_axes()
        search = replace(
            self,
            axis=np.concatenate([self.axis, axes]),
            position=np.concatenate([self.position, self._next_positions()]),
            loss=np.concatenate([self.loss, losses[: axes.size]]),
        )
        if not self._is_new():
            if losses[-1] > self.before + ROUNDING * abs(self.before):
                return replace(search, ended=True, live=np.zeros_like(self.live))
            search = replace(search, joint=min(self.joint, float(losses[-1])))
        live, jumped = self.live.copy(), self.jumped.copy()
        for i in map(int, np.flatnonzero(live)):
            before, (x, f) = self._around(i), search._line(i)
            if not before[0] <= x[f.argmin()] <= before[1]:
                jumped[i] = x.size
            live[i] = x.size < LEAST or not _is_done(x, f)
        enough = search._count() > max(self.least, PATIENCE * int(jumped.max()))
        return replace(search, live=live, jumped=jumped, ended=enough or not live.any())

    def best(self) -> Vector:
        """The best value of every axis."""
        return np.array([x[f.argmin()] for x, f in map(self._line, range(self.base.size))])

    def widths(self) -> Vector:
        """Half of the interval around the best value of every axis; 0 where there is one value."""
        return np.array([0.5 * (right - left) for left, right in map(self._around, range(self.base.size))])

    def _around(self, i: int) -> tuple[float, float]:
        """The interval between the neighbours of the best value of an axis."""
        x, f = self._line(i)
        k = int(f.argmin())
        return float(x[max(k - 1, 0)]), float(x[min(k + 1, x.size - 1)])

    def _tested(self, losses: Vector) -> AxisSearch:
        n = self.base.size
        of_u, of_v = losses[2 : n + 2] - losses[0], losses[1] - losses[n + 2 :]
        size = np.abs(losses).max()
        if not np.isfinite(size):
            return replace(self, ended=True)
        least = ROUNDING * size
        signs = np.sign(of_u) * (np.abs(of_u) > least) * np.sign(of_v) * (np.abs(of_v) > least)
        if (signs < 0.0).any():
            return replace(self, ended=True)
        return replace(self, pairs=self.pairs[1:])

    def _count(self) -> int:
        """Values of the axis that has most."""
        return int(np.bincount(self.axis).max())

    def _is_new(self) -> bool:
        """True if the axes have nothing but the point they go through."""
        return self.axis.size == self.base.size

    def _line(self, i: int) -> tuple[Vector, Vector]:
        """The values of an axis and their losses, in order."""
        own = self.axis == i
        order = np.argsort(self.position[own], kind="stable")
        return self.position[own][order], self.loss[own][order]

    def _next_axes(self) -> IntVector:
        live = np.flatnonzero(self.live)
        return np.repeat(live, GRID) if self._is_new() else live

    def _next_positions(self) -> Vector:
        live = np.flatnonzero(self.live)
        if self._is_new():
            return np.linspace(self.low[live], self.high[live], GRID).T.reshape(-1)
        return np.array([_easiest(*self._line(int(i)))[0] for i in live])


def _easiest(x: Vector, f: Vector) -> tuple[float, float]:
    """The middle of the interval in which the flattest parabola would do, and that parabola's curvature."""
    width, lowest = np.diff(x), f.min()
    finite = f[np.isfinite(f)]
    root = np.sqrt(f - lowest + GAIN * (np.median(finite) - lowest))
    with np.errstate(divide="ignore", invalid="ignore"):
        curvature = np.where(width > 0.0, np.square((root[1:] + root[:-1]) / width), np.inf)
    k = int(curvature.argmin())
    return 0.5 * float(x[k] + x[k + 1]), float(curvature[k])


def _is_done(x: Vector, f: Vector) -> bool:
    """True if a lower value would take a sharper bend than any that is there."""
    needed = _easiest(x, f)[1]
    known = np.isfinite(f) & (np.diff(x, prepend=-np.inf) > 0.0)
    x, f = x[known], f[known]
    if x.size < 3 or np.ptp(f) <= ROUNDING * np.abs(f).max():
        return True
    bends = np.abs(np.diff(np.diff(f) / np.diff(x)) / (x[2:] - x[:-2]))
    return needed > SHARPER * float(bends.max())
