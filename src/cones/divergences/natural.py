r"""KL(old || new), with the loss linear in the natural parameters (Sigma^-1 mu, -Sigma^-1 / 2) instead of (mu, Sigma).

In the frame of the belief,

    maximize    <a, R^-1 m> + <B, I - R^-1>
    subject to  KL(old || new) = 1/2 ( tr R^-1 + m^T R^-1 m - n + log det R ) <= radius^2

It is a Bregman divergence in the natural parameters and convex in them. The maximiser of the Lagrangian moves the mean
parameters linearly, as cross-entropy methods do: with M = I + 2 B / lambda

    m = a / lambda,     R = M - m m^T             (its diagonal, for a diagonal belief)

With k = m^T M^-1 m and the eigenvalues of M,

    phi(lambda) = 1/2 [ sum( log M + 1/M - 1 ) + |M^-1 m|^2 / (1 - k) + k / (1 - k) + log(1 - k) ]

which is finite where M is positive and k < 1; no coordinate's share of k reaches 1 for lambda above

    lambda_min = max( sqrt(b^2 + a^2) - b )

A diagonal belief has a k for each coordinate. (Ollivier et al.,
Information-Geometric Optimization Algorithms, 2017.)
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from cones.beliefs import FrameGradient, FrameMatrix, Step
from cones.divergences.divergence import Lagrangian, Point
from cones.divergences.family import LOWEST_U
from cones.divergences.form import Form, log_ratio, precision_of
from cones.kernels.spans import inner
from cones.types import Vector

__all__ = ["NaturalLagrangian"]

FORM = Form(0.0, 1.0, 1.0)  # of the eigenvalues of M


class Parts(NamedTuple):
    """t = M - 1, M, M^-1 m, and k and 1 - k: numbers, or one for each coordinate of a diagonal belief."""

    t: Vector
    grown: Vector
    solved: Vector
    k: Any
    left: Any


class NaturalLagrangian(Lagrangian):
    """phi and its slope, for the gradient divided by `scale`, its largest magnitude."""

    def __init__(self, gradient: FrameGradient, radius: float, scale: float) -> None:
        self.matrix: FrameMatrix = gradient.covariance
        self.mean, self.radius, self.scale = gradient.mean, radius, scale
        self.b2: Vector = np.asarray(self.matrix.spectrum(), np.float64) / (0.5 * scale)
        mean = gradient.mean if gradient.mean.size else np.zeros_like(self.b2)
        self.a: Vector = np.asarray(self.matrix.coordinates(mean), np.float64) / scale
        self.smallest = 0.5 * float((np.sqrt(self.b2**2 + 4.0 * self.a**2) - self.b2).max())  # lambda_min
        self.near, self.far = precision_of(radius**2, self.b2.size)

    def bracket(self) -> tuple[float, float, float]:
        """The guess has the leading term of phi on the boundary; at the lower bound, phi is infinite or inactive.

        In a large ball that term is the pole at lambda_min, lambda_min / (2 excess).
        """
        norm, largest = math.sqrt(inner(self.a, self.a)), float(np.abs(self.b2).max())
        guess = math.sqrt(0.5 * norm**2 + 0.25 * inner(self.b2, self.b2)) / self.radius
        high = math.log(8.0 * max(guess, largest, norm))
        excess = max(guess - self.smallest, 0.5 * self.smallest / max(self.radius, 3.0) ** 2)
        return LOWEST_U, min(max(math.log(excess), LOWEST_U + 2.0), high), high

    def _sum(self, values: Vector) -> Any:
        return values if self.matrix.keeps_axes else float(values.sum())

    def _parts(self, tau: float) -> Parts:
        t, m = self.b2 * tau, self.a * tau
        grown = 1.0 + t
        k = self._sum(m * m / grown)
        return Parts(t, grown, m / grown, k, 1.0 - k)

    def at(self, u: float) -> Point:
        excess = math.exp(u)
        multiplier = self.smallest + excess
        t, grown, solved, k, left = self._parts(1.0 / multiplier)
        if not (float(grown.min()) > 0.0 and float(np.min(left)) > 0.0):
            return Point(u, multiplier, math.inf, math.nan, math.nan)
        squares, odds = solved * solved, k / left
        length = self._sum(squares)
        log_grown = np.log(grown) if self.far else log_ratio(grown, t) if self.near else None
        parts = FORM.part(t, grown, grown, log_grown)
        phi = float(parts.sum()) + 0.5 * float(np.sum(length / left + odds + np.log1p(-k)))
        # Derivatives in log(1 / lambda), where t and m grow at the rate 1.
        rates = t / grown
        of_k = self._sum(grown * squares * (2.0 - rates))
        of_length = 2.0 * self._sum(squares * (1.0 - rates))
        slope = inner(rates, rates) + float(np.sum(of_length / left + (length + k) * of_k / left**2))
        slope *= -0.5 * excess / multiplier
        return Point(u, multiplier, phi if phi == phi else math.inf, slope, math.nan)

    def step(self, point: Point) -> Step[Any]:
        tau = 1.0 / point.multiplier
        t, grown, solved, _, left = self._parts(tau)
        of_mean = self._sum(self.a * solved - 0.5 * self.b2 * solved * solved)
        gain = float(np.sum(of_mean / left)) + 0.5 * inner(self.b2, t / grown)
        ratio = self.matrix.map(lambda values: values * (2.0 * tau / self.scale))
        shift = self.mean * (tau / self.scale)
        ratio = ratio.plus_outer(shift, -1.0) if shift.size else ratio
        return Step(
            shift=shift,
            log_ratio=ratio.map(np.log1p),
            divergence=point.divergence,
            multiplier=point.multiplier * self.scale,
            objective=gain * self.scale,
            gap=point.multiplier * max(self.radius**2 - point.divergence, 0.0) * self.scale,
        )
