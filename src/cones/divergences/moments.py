r"""KL(new || old), with the loss linear in the mean parameters (mu, Sigma + mu mu^T) instead of (mu, Sigma).

In the frame of the belief, with b the eigenvalues of B and a in their basis,

    maximize    <a, m> + <B, R - I + m m^T>
    subject to  KL = 1/2 ( |m|^2 + sum(r - 1 - log r) ) <= radius^2

A quadratic model a^T z + z^T B z of the loss is exactly linear in the moments, so this step uses its curvature for the
mean as well. For lambda > lambda_min = max(0, 2 max b) the maximiser of the Lagrangian is

    m = (lambda I - 2 B)^-1 a,     R = (I - 2 B / lambda)^-1

KL is a Bregman divergence in the moments and convex in them. Without curvature to trust, lambda is large and the step
is the natural gradient; with a large ball, m is Newton's step. (Abdolmaleki et al., Model-Based Relative Entropy
Stochastic Search, 2015.) A diagonal belief has the mean parameters (mu_i, sigma_i^2 + mu_i^2), and B is its diagonal.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cones.beliefs import FrameGradient, FrameMatrix, Step
from cones.divergences.divergence import Lagrangian, Point
from cones.types import Vector

__all__ = ["MomentsLagrangian"]


class MomentsLagrangian(Lagrangian):
    """phi and its slope, for the gradient divided by `scale`, its largest magnitude."""

    def __init__(self, gradient: FrameGradient, radius: float, scale: float) -> None:
        self.matrix: FrameMatrix = gradient.covariance
        self.mean, self.radius, self.scale = gradient.mean, radius, scale
        mean = gradient.mean if gradient.mean.size else np.zeros_like(self.matrix.spectrum())
        self.a: Vector = np.asarray(self.matrix.coordinates(mean), np.float64) / scale
        self.b2: Vector = np.asarray(self.matrix.spectrum(), np.float64) / (0.5 * scale)
        self.smallest = max(0.0, float(self.b2.max()))

    def bracket(self) -> tuple[float, float, float]:
        """Lower bound: at it, one eigenvalue or the mean alone leaves the ball. Upper bound: all of them fit into it.

        With excess e = lambda - lambda_min, every pole lambda - 2 b is at least e, so that |m| <= |a| / e.
        """
        size, energy = self.b2.size, self.radius**2
        norm, largest = float(np.linalg.norm(self.a)), float(np.abs(self.b2).max())
        high = 4.0 * max(norm / self.radius, largest * max(1.0, math.sqrt(size) / self.radius))
        low = high
        while self.at(math.log(low)).divergence < energy and low > 1e-280:
            low *= 1e-3
        return math.log(low), 0.5 * (math.log(low) + math.log(high)), math.log(high)

    def at(self, u: float) -> Point:
        excess = math.exp(u)
        multiplier = self.smallest + excess
        poles = (self.smallest - self.b2) + excess  # lambda - 2 b
        shift, growth, ratios = self.a / poles, self.b2 / poles, multiplier / poles  # m, r - 1, and r
        logs = np.where(growth < -0.5, np.log(ratios), np.log1p(np.maximum(growth, -0.5)))
        divergence = 0.5 * float(shift @ shift + (growth - logs).sum())
        # d m / d lambda = -m / pole and d r / d lambda = -(r - 1) / pole; d KL / d r = (1 - 1/r) / 2
        slope = -float((shift * shift / poles).sum() + 0.5 * (growth * growth / ratios / poles).sum()) * excess
        return Point(u, multiplier, divergence, slope, math.nan, (shift, growth, logs))

    def step(self, point: Point) -> Step[Any]:
        shift, growth, logs = point.extra
        gain = float(self.a @ shift + 0.5 * self.b2 @ (growth + shift * shift))
        return Step(
            shift=self.matrix.combined(shift, self.mean).astype(self.mean.dtype, copy=False),
            log_ratio=self.matrix.with_spectrum(logs.astype(self.matrix.values.dtype, copy=False)),
            divergence=point.divergence,
            multiplier=point.multiplier * self.scale,
            objective=gain * self.scale,
            gap=point.multiplier * (self.radius**2 - point.divergence) * self.scale,
        )
