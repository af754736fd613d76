r"""The exact convex step by its scalar dual.

In the frame of the belief (see `cones.solvers.step_problem`) the step problem is

    maximize    <a, m> + <b, r - 1>
    subject to  KL = 1/2 sum(m^2 + r - 1 - log r) <= E,        E = radius^2

One multiplier lambda > lambda_min = max(0, 2 max b) prices the ball. With t = 2 b / lambda the
Lagrangian is maximal at m = a / lambda, r = 1 / (1 - t), and the whole problem is the scalar equation

    phi(lambda) = 1/2 [ |a|^2 / lambda^2 + sum( t / (1 - t) + log1p(-t) ) ] = E,

strictly decreasing from +inf to 0. The duality gap at any lambda is lambda (E - phi(lambda)).

The unknown is u = log(lambda - lambda_min): for large balls the root lies closer to lambda_min than
floats near lambda_min resolve, while its distance `excess` is an ordinary number. Halley's method on
log phi(u) - log E converges in a few steps because log phi is nearly straight at both ends; a bracket
guards it. Its derivatives need no more than sums of powers of r - 1 = t / (1 - t).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cones.kernels.buffers import new_vector
from cones.kernels.spans import SPAN, TILE, extremes, for_each_span, for_each_tile, inner, tile_count
from cones.types import Vector

__all__ = ["DualPoint", "dual_value", "solve_dual"]

# The returned point is feasible: phi is steered to the middle of [E (1 - SLACK), E].
SLACK = 1e-11
# The smallest multiplier that is told from zero, relative to the gradient. A ball so large that
# its multiplier would be smaller is inactive in floating point: the gap is then below 1e-270.
SMALLEST = 1e-290
# Below this |t| phi is taken from its power series, because t / (1 - t) + log1p(-t) = t^2/2 + ... cancels.
# sum(t^k) = sum((2b)^k) / lambda^k, so the sums are formed once and an iteration costs a few flops.
SMALL_T = 0.02
POWERS = np.arange(2, 11)
# Of t^k in t / (1 - t) + log1p(-t), in (t / (1 - t))^2 and in (t / (1 - t))^3.
SERIES = 1.0 - 1.0 / POWERS, POWERS - 1.0, 0.5 * (POWERS - 1.0) * (POWERS - 2.0)
# Where no |t| is beyond this, the first terms of that series are a good guess of the root.
SERIES_T = 0.5
MAX_ITERATIONS = 200


@dataclass(frozen=True)
class DualPoint:
    """The maximiser of the Lagrangian at a multiplier, with what certifies it.

    m = (a / scale) / unit_multiplier, where the multiplier is scale * unit_multiplier: their product may
    underflow. `multiplier`, `objective` and `gap` are in the units of the gradient.
    """

    scale: float
    unit_multiplier: float
    log_ratio: Vector
    multiplier: float
    kl: float
    objective: float
    gap: float
    iterations: int
    converged: bool


class _Evaluation(NamedTuple):
    u: float
    multiplier: float
    phi: float
    slope: float  # d phi / d u
    bend: float  # d^2 phi / d u^2
    gain: float  # <2b, r - 1>; NaN where the step itself was not needed


class _Lagrangian:
    """phi and its slope as functions of u, for a gradient scaled to unit size."""

    def __init__(self, norm_a: float, b: Vector, lowest: float, highest: float, scale: float, radius: float) -> None:
        self.norm_a = norm_a
        self.b, self.half_scale = b, max(0.5 * scale, 5e-324)  # the least float has no half
        self.smallest_multiplier = max(0.0, highest / self.half_scale)
        self.largest = max(highest, -lowest) / self.half_scale
        self.single = b.size <= TILE  # then 2b and its distance from the pole are kept, and not computed at every u
        if self.single:
            self.b2 = np.divide(b, self.half_scale, dtype=np.float64)
            self.distance = self.smallest_multiplier - self.b2
        # In a ball this large the rounding of log(1 - t) near t = 0 is lost in the sum.
        self.plain_log = radius**2 > 1e-3 * b.size
        self.log1m = new_vector(b.size, np.float64)  # log(1 - t) of the last `step`

    def _b2(self, part: slice) -> Vector:
        return self.b2 if self.single else np.divide(self.b[part], self.half_scale, dtype=np.float64)

    @cached_property
    def power_sums(self) -> Vector:
        """sum((2b)^k) for k in POWERS."""
        sums = np.empty((tile_count(self.b.size), POWERS.size))

        def work(tile: int, part: slice) -> None:
            powers = [self._b2(part)]
            for _ in range(4):
                powers.append(powers[-1] * powers[0])
            sums[tile] = [powers[(k - 1) // 2] @ powers[k // 2 - 1] for k in POWERS]

        for_each_tile(work, self.b.size)
        return np.asarray(sums.sum(axis=0))

    def at(self, u: float) -> _Evaluation:
        excess = math.exp(u)
        multiplier = self.smallest_multiplier + excess
        mean_part = (self.norm_a / multiplier) ** 2
        gain = math.nan
        if self.largest < SMALL_T * multiplier:
            terms = self.power_sums * (1.0 / multiplier) ** POWERS
            covariance_part, squares, cubes = (float(terms @ factors) for factors in SERIES)
        else:
            covariance_part, squares, cubes, gain = self.step(u)
        phi = 0.5 * (mean_part + covariance_part)
        share = excess / multiplier
        slope = -(mean_part + 0.5 * squares) * share
        bend = (3.0 * mean_part + 1.5 * squares + cubes) * share**2 + slope
        return _Evaluation(u, multiplier, phi, slope, bend, gain)

    def step(self, u: float) -> tuple[float, float, float, float]:
        """Write log(1 - t). With g = r - 1 = t / (1 - t), the sums of g + log(1 - t), g^2, g^3 and 2b g."""
        excess = math.exp(u)
        if self.single:
            return self._step_of(slice(None), excess)
        sums = np.empty((tile_count(self.b.size, SPAN), 4))

        def work(span: int, part: slice) -> None:
            sums[span] = self._step_of(part, excess)

        for_each_tile(work, self.b.size, SPAN)
        both, squares, cubes, gain = (float(total) for total in sums.sum(axis=0))
        return both, squares, cubes, gain

    def _step_of(self, part: slice, excess: float) -> tuple[float, float, float, float]:
        b2, log1m, multiplier = self._b2(part), self.log1m[part], self.smallest_multiplier + excess
        # 1 - t = (excess + distance) / multiplier keeps full relative precision near the pole.
        pole = (self.distance if self.single else self.smallest_multiplier - b2) + excess
        growth = b2 / pole
        if self.plain_log:
            pole *= 1.0 / multiplier
            np.log(pole, out=log1m)
        else:
            minus_t = b2 * (-1.0 / multiplier)
            np.log1p(minus_t, out=log1m)
            if self.smallest_multiplier > 0.5 * multiplier:
                close = np.flatnonzero(minus_t < -0.5)  # where t is too close to 1 to tell 1 - t
                log1m[close] = np.log(pole[close] / multiplier)
        both = float(np.add.reduce(growth)) + float(np.add.reduce(log1m))
        squares = np.multiply(growth, growth, out=pole)
        return both, inner(growth, growth), inner(squares, growth), inner(b2, growth)

    def log_ratio(self) -> Vector:
        """log r = -log(1 - t) of the last `step`, in its place."""

        def work(part: slice) -> None:
            np.negative(self.log1m[part], out=self.log1m[part])

        for_each_span(work, self.log1m.size)
        return self.log1m

    def bracket(self, radius: float) -> tuple[float, float, float]:
        """A lower bound, a first guess and an upper bound of the root.

        From below: the mean alone, and the steepest eigenvalue alone, must each fit into the ball.
        In small balls phi is its leading term (|a|^2 / 2 + |b|^2) / lambda^2, and it is below four
        times that term wherever |t| <= 1/2.
        """
        alone = 2.0 * radius**2 + 2.0 * radius * math.sqrt(radius**2 + 1.0)
        low = max(
            self.norm_a / (math.sqrt(2.0) * radius) - self.smallest_multiplier,
            self.smallest_multiplier / alone,
            SMALLEST,
        )
        sums = np.empty((tile_count(self.b.size), 3))

        def work(tile: int, part: slice) -> None:
            b2 = self._b2(part)
            squares = b2 * b2
            sums[tile] = b2 @ b2, squares @ b2, squares @ squares

        for_each_tile(work, self.b.size)
        second, third, fourth = (float(total) for total in sums.sum(axis=0))
        leading = math.hypot(self.norm_a / math.sqrt(2.0), 0.5 * math.sqrt(second)) / radius
        high = 2.0 * max(self.largest, leading)
        guess = max(low, self._first_guess(leading, radius, third, fourth) - self.smallest_multiplier)
        # The bounds are exact in theory and a rounding error wider here.
        return math.log(low) - 1e-9, math.log(guess), math.log(max(high, low)) + 1e-9

    def _first_guess(self, leading: float, radius: float, third: float, fourth: float) -> float:
        """The multiplier by the first terms of phi's series in 1 / lambda, given sums of powers of 2b."""
        multiplier = leading + 0.5 * self.smallest_multiplier
        if self.largest > SERIES_T * leading:
            return multiplier
        unit = 0.5 * (radius * leading) ** -2  # phi = E (leading / lambda)^2 (1 + unit (2/3 third / lambda + ...))
        for _ in range(4):
            series = 1.0 + unit * (2.0 / 3.0 * third + 0.75 * fourth / multiplier) / multiplier
            multiplier = leading * math.sqrt(max(series, 0.25))
        return multiplier


def solve_dual(norm_a: float, b: Vector, radius: float) -> DualPoint:
    """Solve the step problem for a mean part of length `norm_a` and eigenvalues `b`.

    Only the length of the mean part matters for the multiplier; the step is m = a / multiplier.
    """
    lowest, highest = extremes(b)
    scale = max(norm_a, highest, -lowest)
    if scale == 0.0:
        return DualPoint(1.0, 1.0, np.zeros_like(b), 0.0, 0.0, 0.0, 0.0, 0, True)
    with np.errstate(all="ignore"):
        lagrangian = _Lagrangian(norm_a / scale, b, lowest, highest, scale, radius)
        best, iterations, converged = _root(lagrangian, radius)
        multiplier, gain = best.multiplier, best.gain
        if math.isnan(gain):
            *_, gain = lagrangian.step(best.u)
        return DualPoint(
            scale=scale,
            unit_multiplier=multiplier,
            log_ratio=lagrangian.log_ratio().astype(b.dtype, copy=False),
            multiplier=multiplier * scale,
            kl=best.phi,
            objective=(lagrangian.norm_a**2 / multiplier + 0.5 * gain) * scale,
            gap=multiplier * (radius**2 - best.phi) * scale,
            iterations=iterations,
            converged=converged,
        )


def _root(lagrangian: _Lagrangian, radius: float) -> tuple[_Evaluation, int, bool]:
    energy = radius**2
    target = energy * (1.0 - 0.5 * SLACK)
    low, u, high = lagrangian.bracket(radius)
    for iteration in range(1, MAX_ITERATIONS + 1):
        here = lagrangian.at(u)
        if energy * (1.0 - SLACK) <= here.phi <= energy:
            return here, iteration, True
        if here.phi > energy:
            low = u
        else:
            high = u
            if u <= math.log(SMALLEST):
                return here, iteration, True  # the ball is inactive in floating point
        if here.slope < 0.0 < here.phi < math.inf:
            u -= _halley(math.log(here.phi / target), here.slope / here.phi, here.bend / here.phi)
        if not low < u < high:
            u = 0.5 * (low + high)
            if not low < u < high:
                return lagrangian.at(high), iteration, True  # neighbouring floats: as close as it gets
    return lagrangian.at(high), MAX_ITERATIONS, False


def _halley(value: float, slope: float, bend: float) -> float:
    """How far below u the root of a log phi lies, given phi's derivatives over phi; by Newton's method where the
    curvature is too large to be trusted.
    """
    correction = 0.5 * value * (bend / slope / slope - 1.0)
    return value / slope / (1.0 - correction) if abs(correction) < 0.5 else value / slope


def dual_value(norm_a: float, b: Vector, radius: float, multiplier: float) -> float:
    """The upper bound D(lambda) on the objective, for a multiplier from any solver.

    D(lambda) = lambda E + |a|^2 / (2 lambda) + lambda / 2 sum( -t - log1p(-t) ),   +inf for lambda <= lambda_min.
    """
    if multiplier <= max(0.0, 2.0 * float(b.max())):
        return math.inf
    t = 2.0 * b / multiplier
    return float(multiplier * radius**2 + norm_a**2 / (2.0 * multiplier) - 0.5 * multiplier * (t + np.log1p(-t)).sum())
