r"""The step problem with the loss linear in the moments (mu, Sigma + mu mu^T) instead of (mu, Sigma).

In the frame of the belief, with b the eigenvalues of B and a in their basis,

    maximize    <a, m> + <B, R - I + m m^T>
    subject to  KL = 1/2 ( |m|^2 + sum(r - 1 - log r) ) <= radius^2

A quadratic model a^T z + z^T B z of the loss is exactly linear in the moments, so this step uses its curvature for the
mean as well. For lambda > lambda_min = max(0, 2 max b) the maximiser of the Lagrangian is

    m = (lambda I - 2 B)^-1 a,     R = (I - 2 B / lambda)^-1

KL is a Bregman divergence in the moments and convex in them. Without curvature to trust, lambda is large and the step
is the natural gradient; with a large ball, m is Newton's step. (Abdolmaleki et al., Model-Based Relative Entropy
Stochastic Search, 2015.)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cones.beliefs import FrameGradient, Step, StepStatus
from cones.divergences import Lagrangian, Point
from cones.solvers.root import find_multiplier
from cones.solvers.solver import unmoved
from cones.types import Matrix, Vector

__all__ = ["MomentsLagrangian", "solve_moments"]


def solve_moments(gradient: FrameGradient, radius: float) -> Step[Any]:
    """The steepest ascent step in the ball KL <= radius^2, for a `SpectralMatrix` with a full basis."""
    values, norm = gradient.covariance.spectrum(), float(np.linalg.norm(gradient.mean))
    scale = max(norm, float(np.abs(values).max()))
    if scale == math.inf:  # the square of the norm has overflown
        scale = max(float(np.abs(gradient.mean).max()), float(np.abs(values).max()))
    if not scale < math.inf:
        return unmoved(gradient, StepStatus.FAILED)
    if scale == 0.0:
        return unmoved(gradient, StepStatus.ZERO_GRADIENT)
    lagrangian = MomentsLagrangian(gradient, radius, scale)
    point, iterations, converged = find_multiplier(lagrangian, radius)
    status = StepStatus.OPTIMAL if converged else StepStatus.INACCURATE
    return lagrangian.step(point)._replace(iterations=iterations, status=status)


class MomentsLagrangian(Lagrangian):
    """phi and its slope, for the gradient divided by `scale`, its largest magnitude."""

    def __init__(self, gradient: FrameGradient, radius: float, scale: float) -> None:
        self.matrix, self.radius, self.scale = gradient.covariance, radius, scale
        self.basis: Matrix = gradient.covariance.basis  # type: ignore[attr-defined]
        self.a: Vector = (gradient.mean @ self.basis) / scale
        self.b2: Vector = gradient.covariance.values / (0.5 * scale)
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
            shift=self.basis @ shift,
            log_ratio=self.matrix.with_spectrum(logs),
            divergence=point.divergence,
            multiplier=point.multiplier * self.scale,
            objective=gain * self.scale,
            gap=point.multiplier * (self.radius**2 - point.divergence) * self.scale,
        )
