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
from cones.divergences.kl import size_of
from cones.kernels.spans import SPAN, elementwise, inner, tile_sums
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
        left = c - p * t
        w = left * left
        w -= (4.0 * c * q) * t
        if q > 0.0:
            np.maximum(w, 0.0, out=w)
        np.sqrt(w, out=w)
        low, high = (float(left.min()), float(left.max())) if p and t.size else (c, c)
        below = left + w
        if low < 0.5 * c:  # left + w may cancel
            apart = np.abs(left) + w
            below = np.where(left < 0.0, (-4.0 * c * q) * t / apart, apart)
        r = (2.0 * c) / below
        if rough:
            return r - 1.0, r, w
        right = 2.0 * c - left
        growth = (4.0 * c) * t / ((right + w) * below)
        if high > 1.5 * c:
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


class RenyiFamily(Divergence):
    """A divergence that is an increasing function of a `Form`."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def form(self) -> Form:
        """The form."""

    @property
    def curvature(self) -> float:
        return self.form.c * self.rate(0.0)

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
        scale = size_of(gradient)
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
        self.near, self.far = precision_of(self.energy, self.b2.size)

    def level(self, radius: float) -> float:
        return self.energy

    def bracket(self) -> tuple[float, float, float]:
        """The guess has the first terms of phi on the boundary; at the lower bound, phi overflows or is inactive."""
        q, c, end = self.form.q, self.form.c, self.form.largest_t
        leading = 0.5 * self.square + 0.25 * inner(self.b2, self.b2)
        mean = 2.0 * math.sqrt(self.square * q / (c * end)) if q > 0.0 else 0.0
        largest = float(self.b2.max())
        size = math.sqrt(leading / (c * self.energy))
        high = math.log(8.0 * max(size, 2.0 * largest / end, mean))
        guess = math.log(size)
        if not self.rotates and size > 4.0 * largest / min(end, 1.0):
            guess = self._first_guess(guess, leading / c)
        return LOWEST_U, min(max(guess, LOWEST_U + 2.0), high), high

    def _first_guess(self, u: float, second: float) -> float:
        """log lambda from the terms of phi in lambda^-2, lambda^-3 and lambda^-4; a diagonal belief."""
        q, c = self.form.q, self.form.c
        one, two, three = self.form.orders

        def sums(b2: Vector, x: Vector) -> tuple[float, ...]:
            squares = b2 * b2
            return inner(squares, b2), inner(b2, x), inner(squares, squares), inner(squares, x), inner(x, x)

        cubes, crossed, fourths, mixed, means = tile_sums(sums, self.b2, self.squares, width=SPAN)
        weight = q / c
        third = two / 3.0 * cubes + weight * one * crossed
        fourth = 0.375 * three * fourths + 1.5 * two * weight * mixed + 0.75 * weight * weight * one * means
        for _ in range(4):
            tau = math.exp(-u)
            series = 1.0 + (third + fourth * tau) * tau / second
            u = 0.5 * math.log(second / self.energy * min(max(series, 0.25), 4.0))
        return u

    def at(self, u: float) -> Point:
        form, tau = self.form, math.exp(-u)
        weight = form.q / form.c * tau * tau
        kept: list[Any] = []
        if self.rotates:
            t, squares, core = self._rotated(tau, weight)
            rotated = self._sums(t, squares, weight, axes=core)
            rest = np.delete(self.b2, self.moving) * tau
            parts = np.add(rotated, self._sums(rest, np.zeros_like(rest), weight)) if rest.size else rotated
        elif self.square:
            keep = kept if self.matrix.keeps_axes and self.b2.size <= SPAN else None

            def sums(b2: Vector, x: Vector) -> tuple[float, ...]:
                return self._sums(b2 * tau + weight * x, x, weight, keep)

            parts = tile_sums(sums, self.b2, self.squares, width=SPAN)
        else:
            parts = tile_sums(lambda b2: self._sums(b2 * tau, np.zeros(1), weight), self.b2, width=SPAN)
        divergences, turned, bends = parts
        mean = tau * tau * self.square / (2.0 * form.c)
        phi = mean + divergences + 0.5 * weight * turned
        slope = -(2.0 * mean + weight * turned + 0.5 * bends)
        return Point(u, math.exp(u), phi if phi == phi else math.inf, slope, math.nan, kept or None)

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

    def _sums(
        self, t: Vector, squares: Vector, weight: float, keep: list[Any] | None = None, axes: Vector | None = None
    ) -> tuple[float, ...]:
        """Sums of d, of (r - 1) (v^T a)^2, and of what the slope needs: r' or its divided differences."""
        form, end = self.form, self.form.largest_t
        beyond = bool(t.size) and not float(t.max()) < end * NEAR_END
        inside = np.minimum(t, end) if beyond else t
        growth, r, w = form.growth(inside, self.far)
        s = form.s(inside, growth, r)
        if self.far:
            log_r = np.log(r)
            parts = 0.5 * (np.log(s) / form.q - log_r if form.p else log_r - growth / r)
        else:
            log_r = log_ratio(r, growth)
            parts = form.part(growth, r, s, log_r if self.near else None)
        if keep is not None:
            keep += [t, growth, log_r, parts]
        divergence = float(parts.sum())
        if beyond:
            w = np.where(t < end * NEAR_END, w, math.inf)  # r does not grow any more
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
        weight = form.q / form.c * tau * tau
        dtype = self.matrix.values.dtype
        if point.extra:  # a diagonal belief
            t, growth, log_r, parts = point.extra
            logs = self.matrix.with_spectrum(log_r.astype(dtype, copy=False))
            turned = growth * self.a
        else:
            sloped = self.matrix.plus_outer(self.a, 0.5 * weight / tau) if self.square else self.matrix
            logs = sloped.map(lambda values: self._grown(values, tau)[2].astype(dtype, copy=False))
            turned = logs.map(np.expm1).times(self.a) if self.square else self.a
            t, growth, _, parts = self._grown(sloped.spectrum(), tau)
        shift = elementwise(lambda a, x: (tau / form.c) * (a + form.q * x), self.a, turned)
        along = inner(self.a, turned) if self.square else 0.0
        gain = tau * self.square / form.c + 0.5 * (inner(t, growth) / tau + weight * along / tau)
        gap = point.multiplier * max(self.energy - point.divergence, 0.0)
        beyond = self._beyond(t, growth, parts) * point.multiplier
        return Step(
            shift=shift.astype(self.a.dtype, copy=False),
            log_ratio=logs,
            status=StepStatus.UNPROVED if beyond > 1e-9 * gain else StepStatus.OPTIMAL,
            divergence=self.family.value(point.divergence),
            multiplier=point.multiplier * self.scale / self.family.rate(self.energy),
            objective=gain * self.scale,
            gap=(gap + beyond) * self.scale,
        )

    def _grown(self, values: Vector, tau: float) -> tuple[Vector, Vector, Vector, Vector]:
        """t, r - 1, log r and d(r) for eigenvalues of B."""
        t = 2.0 * tau * np.asarray(values, np.float64)
        inside = np.minimum(t, self.form.largest_t)
        growth, r, _ = self.form.growth(inside)
        log_r = log_ratio(r, growth)
        return t, growth, log_r, self.form.part(growth, r, self.form.s(inside, growth, r), log_r)

    def _beyond(self, t: Vector, growth: Vector, parts: Vector) -> float:
        """What the Lagrangian gains at the largest r of the ball, over the multiplier; 0 where the ball is convex."""
        form = self.form
        if form.q <= 0.0 or self.energy <= form.part_of(1.0 + form.q**-0.5) or float(t.max()) <= 0.0:
            return 0.0
        farthest, top = form.farthest(self.energy), int(t.argmax())  # what is gained grows with t
        if float(0.5 * t[top] * (farthest - growth[top] - 1.0) + parts[top]) <= self.energy:
            return 0.0
        return float(np.maximum(0.5 * t * (farthest - growth - 1.0) + parts - self.energy, 0.0).sum())


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
