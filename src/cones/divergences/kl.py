r"""The paper's ball: KL(new || old), with the loss linear in (mean, covariance).

In the frame of the belief (see `cones.beliefs.gaussian.gaussian`), with b the eigenvalues of B, the step problem is

    maximize    <a, m> + <b, r - 1>
    subject to  KL = 1/2 sum(m^2 + r - 1 - log r) <= E,        E = radius^2

For lambda > lambda_min = max(0, 2 max b) and t = 2 b / lambda, the maximiser of the Lagrangian is m = a / lambda,
r = 1 / (1 - t). Its divergence is

    phi(lambda) = 1/2 [ |a|^2 / lambda^2 + sum( t / (1 - t) + log1p(-t) ) ]

For large balls the root is closer to lambda_min than floats near lambda_min resolve. The unknown is therefore u, where
`excess` = e^u is the distance from lambda_min. The derivatives of phi in u are sums of powers of r - 1 = t / (1 - t).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cones.beliefs import Belief, FamilyGradient, FrameGradient, ProductGradient, Step
from cones.divergences.divergence import Divergence, Lagrangian, Point
from cones.divergences.families import FamilyLagrangian, ProductLagrangian
from cones.divergences.moments import MomentsLagrangian
from cones.kernels.spans import SPAN, elementwise, extremes, inner, tile_sums
from cones.types import Vector

__all__ = ["KL", "KLLagrangian", "dual_value"]

# Multipliers below this, relative to the gradient, count as zero. Such a ball is so large that it is inactive in
# floating point: the gap is below 1e-270.
SMALLEST = 1e-290
# Below this |t|, phi is computed by its power series, because t / (1 - t) + log1p(-t) = t^2/2 + ... cancels.
# sum(t^k) = sum((2b)^k) / lambda^k, so the sums are computed once and an evaluation costs a few flops.
SMALL_T = 0.02
POWERS = np.arange(2, 11)
# Coefficients of t^k in t / (1 - t) + log1p(-t), in (t / (1 - t))^2 and in (t / (1 - t))^3.
SERIES = 1.0 - 1.0 / POWERS, POWERS - 1.0, 0.5 * (POWERS - 1.0) * (POWERS - 2.0)
# If all |t| are below this, the first terms of that series give a good first guess of the root.
SERIES_T = 0.5


def in_moments(gradient: FrameGradient, radius: float) -> MomentsLagrangian | None:
    scale = size_of(gradient)
    return None if scale == 0.0 else MomentsLagrangian(gradient, radius, scale)


@dataclass(frozen=True)
class KL(Divergence):
    """KL(new || old), the Kullback-Leibler divergence."""

    name = "kl"
    charts = {"mean_parameters": in_moments}  # noqa: RUF012
    for_families = True

    def lagrangian(self, gradient: Any, radius: float) -> Lagrangian | None:
        if isinstance(gradient, ProductGradient):
            parts = [(self.lagrangian(part, radius), part) for part in gradient.parts]
            return ProductLagrangian(parts, radius) if any(part for part, _ in parts) else None
        if isinstance(gradient, FamilyGradient):
            return FamilyLagrangian(gradient, radius) if gradient.mean.any() else None
        b, norm = gradient.covariance.spectrum(), length(gradient.mean)
        lowest, highest = extremes(b)
        is_zero = norm == highest == lowest == 0.0
        return None if is_zero else KLLagrangian(gradient, radius, b, norm, lowest, highest)

    def between(self, new: Belief, old: Belief) -> float:
        return new.kl(old)


class KLLagrangian(Lagrangian):
    """phi and its derivatives, for the gradient (a, B) divided by `scale`, its largest magnitude."""

    def __init__(
        self, gradient: FrameGradient, radius: float, b: Vector, norm: float, lowest: float, highest: float
    ) -> None:
        self.a, self.matrix, self.radius = gradient.mean, gradient.covariance, radius
        self.scale = scale = max(norm, highest, -lowest)
        half = max(0.5 * scale, 5e-324)  # half of the smallest float underflows
        self.norm = norm / scale
        self.b2: Vector = elementwise(lambda values: np.divide(values, half, dtype=np.float64), b)
        self.smallest = max(0.0, highest / half)  # lambda_min
        self.largest = max(highest, -lowest) / half
        # In a ball this large, rounding errors of log(1 - t) near t = 0 are negligible in the sum.
        self.plain_log = radius**2 > 1e-3 * b.size

    def at(self, u: float) -> Point:
        excess = math.exp(u)
        multiplier = self.smallest + excess
        mean_part = (self.norm / multiplier) ** 2
        extra = None
        if self.largest < SMALL_T * multiplier:
            terms = self._power_sums * (1.0 / multiplier) ** POWERS
            covariance_part, squares, cubes = (float(terms @ factors) for factors in SERIES)
        else:
            covariance_part, squares, cubes, extra = self._sums(excess)
        phi = 0.5 * (mean_part + covariance_part)
        share = excess / multiplier
        slope = -(mean_part + 0.5 * squares) * share
        bend = (3.0 * mean_part + 1.5 * squares + cubes) * share**2 + slope
        return Point(u, multiplier, phi, slope, bend, extra)

    def step(self, point: Point) -> Step[Any]:
        if point.extra is None:
            *_, extra = self._sums(math.exp(point.u))
        else:
            extra = point.extra
        gain, log1m = extra
        dtype = self.matrix.values.dtype
        if log1m is None:
            excess = math.exp(point.u)
            log_ratio = elementwise(lambda b2: -self._growth(b2, excess)[1].astype(dtype, copy=False), self.b2)
        else:
            log_ratio = np.negative(log1m).astype(dtype, copy=False)
        return Step(
            shift=elementwise(lambda a: a / self.scale / point.multiplier, self.a),
            log_ratio=self.matrix.with_spectrum(log_ratio),
            divergence=point.divergence,
            multiplier=point.multiplier * self.scale,
            objective=(self.norm**2 / point.multiplier + 0.5 * gain) * self.scale,
            gap=point.multiplier * (self.radius**2 - point.divergence) * self.scale,
        )

    def _growth(self, b2: Vector, excess: float) -> tuple[Vector, Vector]:
        """r - 1 = t / (1 - t), and log(1 - t)."""
        multiplier = self.smallest + excess
        pole = (self.smallest - b2) + excess  # lambda (1 - t), with full relative precision near the pole
        growth = b2 / pole
        if self.plain_log:
            pole *= 1.0 / multiplier
            return growth, np.log(pole, out=pole)
        log1m = np.log1p(b2 * (-1.0 / multiplier))
        if self.smallest > 0.5 * multiplier:
            close = np.flatnonzero(b2 > 0.5 * multiplier)  # t so close to 1 that 1 - t cancels
            log1m[close] = np.log(pole[close] / multiplier)
        return growth, log1m

    def _sums(self, excess: float) -> tuple[float, float, float, tuple[float, Vector | None]]:
        """Sums of g + log(1 - t), g^2 and g^3 for g = r - 1; the sum of 2b g; and log(1 - t) if n is small."""

        def sums(b2: Vector) -> tuple[float, ...]:
            growth, log1m = self._growth(b2, excess)
            if keep:
                logs.append(log1m)
            both = float(np.add.reduce(growth)) + float(np.add.reduce(log1m))
            return both, inner(growth, growth), inner(growth * growth, growth), inner(b2, growth)

        keep = self.b2.size <= SPAN
        logs: list[Vector] = []
        both, squares, cubes, gain = tile_sums(sums, self.b2, width=SPAN)
        return both, squares, cubes, (gain, logs[0] if keep else None)

    @cached_property
    def _power_sums(self) -> Vector:
        """sum((2b)^k) for k in POWERS."""

        def sums(b2: Vector) -> tuple[float, ...]:
            powers = [b2]
            for _ in range(4):
                powers.append(powers[-1] * b2)
            return tuple(float(powers[(k - 1) // 2] @ powers[k // 2 - 1]) for k in POWERS)

        return np.array(tile_sums(sums, self.b2))

    def bracket(self) -> tuple[float, float, float]:
        """Bounds and a first guess.

        Lower bound: the mean alone and the steepest eigenvalue alone must each fit into the ball. Upper bound: for
        |t| <= 1/2, phi is below four times its leading term (|a|^2 / 2 + |b|^2) / lambda^2.
        """
        radius = self.radius
        alone = 2.0 * radius**2 + 2.0 * radius * math.sqrt(radius**2 + 1.0)
        low = max(self.norm / (math.sqrt(2.0) * radius) - self.smallest, self.smallest / alone, SMALLEST)

        def sums(b2: Vector) -> tuple[float, float, float]:
            squares = b2 * b2
            return float(b2 @ b2), float(squares @ b2), float(squares @ squares)

        second, third, fourth = tile_sums(sums, self.b2)
        leading = math.hypot(self.norm / math.sqrt(2.0), 0.5 * math.sqrt(second)) / radius
        high = 2.0 * max(self.largest, leading)
        guess = max(low, self._first_guess(leading, third, fourth) - self.smallest)
        # The margins absorb rounding errors of the bounds.
        return math.log(low) - 1e-9, math.log(guess), math.log(max(high, low)) + 1e-9

    def _first_guess(self, leading: float, third: float, fourth: float) -> float:
        """The multiplier from the first terms of phi's series in 1 / lambda, given power sums of 2b."""
        multiplier = leading + 0.5 * self.smallest
        if self.largest > SERIES_T * leading:
            return multiplier
        # phi = E (leading / lambda)^2 (1 + unit (2/3 third / lambda + ...))
        unit = 0.5 * (self.radius * leading) ** -2
        for _ in range(4):
            series = 1.0 + unit * (2.0 / 3.0 * third + 0.75 * fourth / multiplier) / multiplier
            multiplier = leading * math.sqrt(max(series, 0.25))
        return multiplier


def size_of(gradient: FrameGradient) -> float:
    """The largest magnitude of a gradient: |a| or that of an eigenvalue of B."""
    lowest, highest = extremes(gradient.covariance.spectrum())
    return max(length(gradient.mean), highest, -lowest)


def length(vector: Vector) -> float:
    """|vector|, robust against overflow and underflow of the squares."""
    norm = math.sqrt(inner(vector, vector))
    if 1e-150 < norm < math.inf or not vector.size:
        return norm
    largest = largest_of(vector)
    return largest * float(np.linalg.norm(vector / largest)) if largest > 0.0 else 0.0


def largest_of(array: Vector) -> float:
    """max |array|, without a temporary array."""
    return max(float(array.max(initial=0.0)), -float(array.min(initial=0.0)))


def dual_value(norm_a: float, b: Vector, radius: float, multiplier: float) -> float:
    """The upper bound D(lambda) on the objective, for a multiplier from any solver.

    D(lambda) = lambda E + |a|^2 / (2 lambda) + lambda / 2 sum( -t - log1p(-t) ),   +inf for lambda <= lambda_min.
    """
    if multiplier <= max(0.0, 2.0 * float(b.max())):
        return math.inf
    t = 2.0 * b / multiplier
    return float(multiplier * radius**2 + norm_a**2 / (2.0 * multiplier) - 0.5 * multiplier * (t + np.log1p(-t)).sum())
