r"""The balls of the Renyi family: divergences that are functions of one form in the frame.

With S = p I + q R, p + q = 1, and r the eigenvalues of R,

    D = c/2 m^T S^-1 m + sum d(r),     d'(r) = c/2 (r - 1) / (r (p + q r))

Renyi's divergence of order alpha has p = c = alpha, q = 1 - alpha; KL(old || new) has p = 0, q = c = 1. The loss is
linear in (mean, covariance). At a multiplier lambda the maximiser of the Lagrangian has the axes of

    T = 2 B / lambda + q / (c lambda^2) a a^T            (its diagonal, for a diagonal belief)

and, with t the eigenvalues of T and w = sqrt( (c - p t)^2 - 4 c q t ),

    r = 2 c / (c - p t + w),     m = S a / (c lambda)
    phi(lambda) = |a|^2 / (2 c lambda^2) + sum( d(r) + q / (2 c lambda^2) (r - 1) (v^T a)^2 ),     v the axes of T

**Where it is convex.** For q <= 0 (alpha >= 1) everywhere. For q > 0 only while r < 1 + 1/sqrt(q), that is,
t < c / (1 + sqrt(q))^2: the step stays in there. Beyond, t (r - 1) / 2 - d(r) is convex in r, so that its maximum over
all r with d(r) <= level, as every r in the ball has, is at r or at the end. So the gap is a bound for the whole ball.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cones.beliefs import DiagonalGaussian, FrameGradient, FrameMatrix, FullGaussian, Gaussian, Step, StepStatus
from cones.divergences.divergence import Divergence, Lagrangian, Point
from cones.divergences.kl import length
from cones.kernels.spans import elementwise, extremes, inner, tile_sums
from cones.types import Vector

__all__ = ["Form", "FormLagrangian", "RenyiFamily"]

# Below this |r - 1| and |q (r - 1)|, logarithms cancel and their series are used.
SMALL = 0.25
# log(1 + x) - x = -2 y^2 / (1 - y) + 2 y^3 (1/3 + y^2/5 + ...), y = x / (2 + x): the coefficients 1/3, 1/5, ...
SERIES = 1.0 / np.arange(3, 21, 2)
LOWEST_U = -670.0  # below, a multiplier counts as zero
NEAR_END = 1.0 - 1e-12


class Form(NamedTuple):
    """p, q and c of a divergence."""

    p: float
    q: float
    c: float

    @property
    def largest_t(self) -> float:
        """The end of t where the form is convex."""
        return self.c / (1.0 + math.sqrt(self.q)) ** 2 if self.q > 0.0 else math.inf

    def growth(self, t: Vector) -> tuple[Vector, Vector, Vector]:
        """r - 1, r and w for t up to `largest_t`, without cancellation."""
        p, q, c = self
        left, right = c - p * t, c + p * t
        w = np.sqrt(np.maximum(left * left - (4.0 * c * q) * t, 0.0))
        below, above = left + w, right + w
        low, high = (float(t.min()), float(t.max())) if t.size else (0.0, 0.0)
        if high * p > 0.5 * c:
            far = left < 0.0
            below[far] = (-4.0 * c * q) * t[far] / (w[far] - left[far])
        growth = (4.0 * c) * t / (above * below)
        if low * p < -0.5 * c:
            far = right < 0.0
            growth[far] = (right[far] - w[far]) / below[far]
        return growth, (2.0 * c) / below, w

    def s(self, t: Vector, growth: Vector, r: Vector) -> Vector:
        """p + q r; near its zero, from d'(r) = t / 2."""
        s = 1.0 + self.q * growth
        near = np.flatnonzero(s < 0.5)
        if near.size and self.q < 0.0:
            s[near] = self.c * growth[near] / (t[near] * r[near])
        return np.asarray(s)

    def part(self, growth: Vector, r: Vector, s: Vector, plain: bool = False) -> Vector:
        """d(r); `plain` if rounding errors of the order of 1e-16 do not matter."""
        q = self.q
        log_r = np.log(r)
        if self.p:
            log_s = np.log(s) if abs(q) > 0.01 else np.where(s < 0.5, np.log(s), np.log1p(q * growth))
            found = 0.5 * (log_s / q - log_r)
        else:
            found = 0.5 * (log_r - growth / r)
        if plain:
            return np.asarray(found)
        small = np.abs(growth) < SMALL / max(1.0, abs(q))
        g = growth[small]
        if self.p:
            found[small] = 0.5 * (log1p_minus(q * g) / q - log1p_minus(g))
        else:
            found[small] = 0.5 * (log1p_minus(g) + g * g / (1.0 + g))
        return np.asarray(found)

    def part_of(self, r: float) -> float:
        """d(r) of one number far from 1."""
        growth, log_r = r - 1.0, math.log(r)
        return 0.5 * (math.log1p(self.q * growth) / self.q - log_r if self.p else log_r - growth / r)

    def farthest(self, level: float) -> float:
        """The largest r with d(r) <= level; inf beyond floats."""
        low, high = 0.0, 700.0
        if self.part_of(math.exp(high)) < level:
            return math.inf
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.part_of(math.exp(middle)) < level else (low, middle)
        return math.exp(high)


class RenyiFamily(Divergence):
    """A divergence that is an increasing function of a `Form`."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def form(self) -> Form:
        """The form."""

    def level(self, divergence: float) -> float:
        """The value of the form at a value of the divergence."""
        return divergence

    def value(self, level: float) -> float:
        """The divergence at a value of the form."""
        return level

    def rate(self, level: float) -> float:
        """The derivative of `value`."""
        return 1.0

    def lagrangian(self, gradient: FrameGradient, radius: float) -> Lagrangian | None:
        norm, (lowest, highest) = length(gradient.mean), extremes(gradient.covariance.spectrum())
        scale = max(norm, highest, -lowest)
        return None if scale == 0.0 else FormLagrangian(self, gradient, radius, scale)

    def between(self, new: Gaussian, old: Gaussian) -> float:
        shift = old.to_frame(new.mean - old.mean)
        if isinstance(new, DiagonalGaussian) and isinstance(old, DiagonalGaussian):
            logs = 2.0 * np.log(new.deviation / old.deviation)
        else:
            if isinstance(new, FullGaussian) and isinstance(old, FullGaussian):
                columns, _ = old.frame_of(new)
            else:
                columns = np.column_stack([old.to_frame(new.from_frame(axis)) for axis in np.eye(old.dim)])
            axes, roots, _ = np.linalg.svd(columns)
            logs, shift = 2.0 * np.log(roots), shift @ axes
        form, growth = self.form, np.expm1(logs)
        s = 1.0 + form.q * growth
        if (s <= 0.0).any():
            return self.value(math.inf)
        return self.value(float(0.5 * form.c * (shift * shift / s).sum() + form.part(growth, np.exp(logs), s).sum()))


class FormLagrangian(Lagrangian):
    """phi and its slope, for the gradient (a, B) divided by `scale`, its largest magnitude."""

    def __init__(self, family: RenyiFamily, gradient: FrameGradient, radius: float, scale: float) -> None:
        self.family, self.form, self.scale = family, family.form, scale
        self.energy = family.level(radius**2)
        self.matrix: FrameMatrix = gradient.covariance.map(lambda values: values / scale)
        spectrum = self.matrix.spectrum()
        mean = gradient.mean if gradient.mean.size else np.zeros_like(spectrum)
        self.a: Vector = elementwise(lambda a: a / scale, mean)
        self.b2 = 2.0 * np.asarray(spectrum, np.float64)
        self.square = inner(self.a, self.a)
        along = self.matrix.coordinates(self.a)
        self.rotates = not self.matrix.keeps_axes and self.square > 0.0
        self.moving = np.flatnonzero(along) if self.rotates else np.arange(0)
        self.along, self.squares = np.asarray(along, np.float64), np.square(along, dtype=np.float64)
        self.plain = self.energy > 1e-3 * self.b2.size

    def level(self, radius: float) -> float:
        return self.energy

    def bracket(self) -> tuple[float, float, float]:
        """The guess has the leading term of phi on the boundary; the lower bound is found by trying."""
        q, c, end = self.form.q, self.form.c, self.form.largest_t
        guess = math.sqrt((0.5 * self.square + 0.25 * inner(self.b2, self.b2)) / (c * self.energy))
        mean = 2.0 * math.sqrt(self.square * q / (c * end)) if q > 0.0 else 0.0
        high = math.log(8.0 * max(guess, 2.0 * float(self.b2.max()) / end, mean))
        middle, stride = max(math.log(guess), LOWEST_U + 2.0), 2.0
        low = middle - stride
        while low > LOWEST_U and not self.at(low).divergence >= self.energy:
            stride *= 2.0
            low -= stride
        return low, middle, high

    def at(self, u: float) -> Point:
        form, tau = self.form, math.exp(-u)
        weight = form.q / form.c * tau * tau
        if self.rotates:
            t, squares, core = self._rotated(tau, weight)
            rotated = self._sums(t, squares, weight, axes=core)
            rest = np.delete(self.b2, self.moving) * tau
            parts = np.add(rotated, self._sums(rest, np.zeros_like(rest), weight)) if rest.size else rotated
        elif self.square:
            parts = tile_sums(lambda b2, x: self._sums(b2 * tau + weight * x, x, weight), self.b2, self.squares)
        else:
            parts = tile_sums(lambda b2: self._sums(b2 * tau, np.zeros(1), weight), self.b2)
        divergences, turned, bends = parts
        mean = tau * tau * self.square / (2.0 * form.c)
        phi = mean + divergences + 0.5 * weight * turned
        slope = -(2.0 * mean + weight * turned + 0.5 * bends)
        return Point(u, math.exp(u), phi if phi == phi else math.inf, slope, math.nan)

    def _rotated(self, tau: float, weight: float) -> tuple[Vector, Vector, Vector]:
        """Eigenvalues of T on the axes that a a^T moves, and the squares and lengths of a along them."""
        along = self.along[self.moving]
        core = weight * np.outer(along, along)
        core[np.diag_indices_from(core)] += tau * self.b2[self.moving]
        if not np.isfinite(core).all():
            return np.full(along.size, math.nan), np.square(along), along
        t, vectors = np.linalg.eigh(core)
        turned = along @ vectors
        return t, np.square(turned), turned

    def _sums(self, t: Vector, squares: Vector, weight: float, axes: Vector | None = None) -> tuple[float, ...]:
        """Sums of d, of (r - 1) (v^T a)^2, and of what the slope needs: r' or its divided differences."""
        form, end = self.form, self.form.largest_t
        inside = np.minimum(t, end) if end < math.inf else t
        growth, r, w = form.growth(inside)
        s = form.s(inside, growth, r)
        divergence = float(form.part(growth, r, s, self.plain).sum())
        if end < math.inf:
            w[inside >= end * NEAR_END] = math.inf  # r does not grow any more
        derivative = r * s / w
        turned = inner(growth, squares) if squares.size == growth.size else 0.0
        moved = t + weight * squares
        if axes is None:
            return divergence, turned, inner(derivative * moved, moved)
        differences = t[:, None] - t
        close = np.abs(differences) <= 1e-9 * (1.0 + np.abs(t))
        quotients = np.where(
            close, 0.5 * (derivative[:, None] + derivative), (r[:, None] - r) / np.where(close, 1.0, differences)
        )
        outer = weight * np.outer(axes, axes)
        outer[np.diag_indices_from(outer)] += t
        return divergence, turned, float((quotients * outer * outer).sum())

    def step(self, point: Point) -> Step[Any]:
        form, tau = self.form, 1.0 / point.multiplier
        end, weight = form.largest_t, form.q / form.c * tau * tau
        sloped = self.matrix.plus_outer(self.a, 0.5 * weight / tau) if self.square else self.matrix
        dtype = self.matrix.values.dtype

        def logs(values: Vector) -> Vector:
            t = np.minimum(2.0 * tau * np.asarray(values, np.float64), end)
            growth, r, _ = form.growth(t)
            return np.where(np.abs(growth) < SMALL, np.log1p(growth), np.log(r)).astype(dtype, copy=False)

        log_ratio = sloped.map(logs)
        turned = log_ratio.map(np.expm1).times(self.a) if self.square else self.a
        shift = elementwise(lambda a, x: (tau / form.c) * (a + form.q * x), self.a, turned)
        along = inner(self.a, turned) if self.square else 0.0
        t = 2.0 * tau * np.asarray(sloped.spectrum(), np.float64)
        growth, r, _ = form.growth(np.minimum(t, end))
        gain = tau * self.square / form.c + 0.5 * (inner(t, growth) / tau + weight * along / tau)
        gap = point.multiplier * max(self.energy - point.divergence, 0.0)
        beyond = self._beyond(t, growth, r) * point.multiplier
        return Step(
            shift=shift.astype(self.a.dtype, copy=False),
            log_ratio=log_ratio,
            status=StepStatus.UNPROVED if beyond > 1e-9 * gain else StepStatus.OPTIMAL,
            divergence=self.family.value(point.divergence),
            multiplier=point.multiplier * self.scale / self.family.rate(self.energy),
            objective=gain * self.scale,
            gap=(gap + beyond) * self.scale,
        )

    def _beyond(self, t: Vector, growth: Vector, r: Vector) -> float:
        """What the Lagrangian gains at the largest r of the ball, over the multiplier; 0 where the ball is convex."""
        form = self.form
        if form.q <= 0.0 or self.energy <= form.part_of(1.0 + form.q**-0.5) or float(t.max()) <= 0.0:
            return 0.0
        farthest = form.farthest(self.energy)
        ahead = t > 0.0
        t, growth, r = t[ahead], growth[ahead], r[ahead]
        now = 0.5 * t * growth - form.part(growth, r, 1.0 + form.q * growth)
        return float(np.maximum(0.5 * t * (farthest - 1.0) - self.energy - now, 0.0).sum())


def log1p_minus(x: Vector) -> Vector:
    """log(1 + x) - x for small x, with full relative precision."""
    y = x / (2.0 + x)
    square = y * y
    series = np.full_like(y, SERIES[-1])
    for coefficient in SERIES[-2::-1]:
        series = series * square + coefficient
    return np.asarray(2.0 * square * (y * series - 1.0 / (1.0 - y)))
