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
from typing import Any, ClassVar

import numpy as np

from cones.beliefs import DiagonalGaussian, FrameGradient, FrameMatrix, FullGaussian, Gaussian, Step, StepStatus
from cones.divergences.divergence import Divergence, Lagrangian, Point
from cones.divergences.form import Form, log_ratio, precision_of
from cones.divergences.kl import size_of
from cones.kernels.spans import SPAN, elementwise, inner, tile_sums
from cones.types import Matrix, Vector

__all__ = ["FormLagrangian", "RenyiFamily"]

LOWEST_U = -670.0  # below, a multiplier counts as zero
NEAR_END = 1.0 - 1e-12


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
        # The form of all axes at the end of where it is convex.
        at_end = self.b2.size * self.form.part_of(1.0 + q**-0.5) if q > 0.0 else 0.0
        few_at_end = self.energy < 0.15 * at_end or size > 4.0 * largest / min(end, 1.0)
        if few_at_end and not self.rotates:
            guess = self._first_guess(guess, leading / c)
        elif q > 0.0 and self.square > 0.0 and self.energy > 4.0 * at_end:  # phi is that of these axes and of the mean
            guess = 0.5 * math.log((1.0 + math.sqrt(q)) * self.square / (2.0 * c * (self.energy - at_end)))
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
            rotated = self._sums(t, squares, weight * squares, coupling=weight * np.outer(core, core))
            rest = np.delete(self.b2, self.moving) * tau
            parts = np.add(rotated, self._sums(rest, None, 0.0)) if rest.size else rotated
        elif self.square:
            keep = kept if self.matrix.keeps_axes and self.b2.size <= SPAN else None

            def sums(b2: Vector, x: Vector) -> tuple[float, ...]:
                of_mean, t = x * weight, b2 * tau
                t += of_mean
                return self._sums(t, x, of_mean, keep)

            parts = tile_sums(sums, self.b2, self.squares, width=SPAN)
        else:
            parts = tile_sums(lambda b2: self._sums(b2 * tau, None, 0.0), self.b2, width=SPAN)
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
        self,
        t: Vector,
        squares: Vector | None,
        of_mean: Any,
        keep: list[Any] | None = None,
        coupling: Matrix | None = None,
    ) -> tuple[float, ...]:
        """Sums of d, of (r - 1) (v^T a)^2, and of what the slope needs: r' or its divided differences.

        `squares` are (v^T a)^2, `of_mean` what they add to t, and `coupling` what the mean adds to T in its axes.
        """
        form, end = self.form, self.form.largest_t
        beyond = bool(t.size) and not float(t.max()) < end * NEAR_END
        # NumPy is slow at minima with a number, but not at those with a vector.
        inside = np.minimum(t, np.full(t.size, end)) if beyond else t
        growth, r, w = form.growth(inside, self.far)
        s = form.s(inside, growth, r)
        if self.far:
            log_r = np.log(r)
            logs = float(log_r.sum())
            other = float(np.log(s).sum()) / form.q if form.p else float((growth / r).sum())
            divergence = 0.5 * (other - logs) if form.p else 0.5 * (logs - other)
        else:
            log_r = log_ratio(r, growth)
            divergence = float(form.part(growth, r, s, log_r if self.near else None).sum())
        if keep is not None:
            keep += [t, growth, r, log_r]
        if beyond:
            np.putmask(w, t >= end * NEAR_END, math.inf)  # r does not grow any more
        derivative = r * s
        derivative /= w
        turned = 0.0 if squares is None else inner(growth, squares)
        moved = t + of_mean
        if coupling is None:
            return divergence, turned, inner(derivative * moved, moved)
        differences = t[:, None] - t
        close = np.abs(differences) <= 1e-9 * (1.0 + np.abs(t))
        quotients = np.where(
            close, 0.5 * (derivative[:, None] + derivative), (r[:, None] - r) / np.where(close, 1.0, differences)
        )
        rates = coupling + np.diag(t)
        return divergence, turned, float((quotients * rates * rates).sum())

    def step(self, point: Point) -> Step[Any]:
        form, tau = self.form, 1.0 / point.multiplier
        weight = form.q / form.c * tau * tau
        dtype = self.matrix.values.dtype
        if point.extra:  # a diagonal belief
            t, growth, r, log_r = point.extra
            logs = self.matrix.with_spectrum(log_r.astype(dtype, copy=False))
            turned = growth * self.a
        else:
            sloped = self.matrix.plus_outer(self.a, 0.5 * weight / tau) if self.square else self.matrix
            logs = sloped.map(lambda values: self._grown(values, tau)[3].astype(dtype, copy=False))
            turned = logs.map(np.expm1).times(self.a) if self.square else self.a
            t, growth, r, log_r = self._grown(sloped.spectrum(), tau)
        shift = elementwise(lambda a, x: (tau / form.c) * (a + form.q * x), self.a, turned)
        along = inner(self.a, turned) if self.square else 0.0
        gain = tau * self.square / form.c + 0.5 * (inner(t, growth) / tau + weight * along / tau)
        gap = point.multiplier * max(self.energy - point.divergence, 0.0)
        beyond = self._beyond(t, growth, r, log_r) * point.multiplier
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
        """t, r - 1, r and log r for eigenvalues of B."""
        t = 2.0 * tau * np.asarray(values, np.float64)
        growth, r, _ = self.form.growth(np.minimum(t, self.form.largest_t))
        return t, growth, r, log_ratio(r, growth)

    def _beyond(self, t: Vector, growth: Vector, r: Vector, log_r: Vector) -> float:
        """What the Lagrangian gains at the largest r of the ball, over the multiplier; 0 where the ball is convex."""
        form = self.form
        if form.q <= 0.0 or self.energy <= form.part_of(1.0 + form.q**-0.5) or float(t.max()) <= 0.0:
            return 0.0
        farthest, top = form.farthest(self.energy), int(t.argmax())  # what is gained grows with t
        if farthest == math.inf:
            return math.inf
        if 0.5 * float(t[top]) * (farthest - float(r[top])) + form.part_of(float(r[top])) <= self.energy:
            return 0.0
        parts = form.part(growth, r, 1.0 + form.q * growth, log_r)
        return float(np.maximum(0.5 * t * (farthest - r) + parts - self.energy, 0.0).sum())
