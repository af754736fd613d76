r"""The multiplier of a ball: the root of phi(lambda) = radius^2.

Halley's method on log phi(u) - log radius^2, u = log(lambda - lambda_min), safeguarded by a bracket. It converges in a
few steps because log phi is nearly linear at both ends. If the second derivative is unknown, the last two points and
their slopes give a cubic of u in log phi.
"""

from __future__ import annotations

import math

from cones.divergences import Lagrangian, Point

__all__ = ["find_multiplier"]

# The target is the middle of [E (1 - SLACK), E], so that the returned point is feasible.
SLACK = 1e-11
# An excess below this counts as zero: the ball is inactive in floating point.
SMALLEST_U = math.log(1e-290)
MAX_ITERATIONS = 200


def find_multiplier(lagrangian: Lagrangian, radius: float) -> tuple[Point, int, bool]:
    """The point on the boundary of the ball, the number of iterations, and True if they converged."""
    energy = lagrangian.level(radius)
    target = energy * (1.0 - 0.5 * SLACK)
    low, u, high = lagrangian.bracket()
    before = None
    for iteration in range(1, MAX_ITERATIONS + 1):
        here = lagrangian.at(u)
        if energy * (1.0 - SLACK) <= here.divergence <= energy:
            return here, iteration, True
        if here.divergence > energy:
            low = u
        else:
            high = u
            if u <= SMALLEST_U:
                return here, iteration, True
        if here.slope < 0.0 < here.divergence < math.inf:
            phi = here.divergence
            if before is not None and math.isnan(here.bend):
                u = _cubic(before, here, target)
            else:
                u -= _halley(math.log(phi / target), here.slope / phi, here.bend / phi)
            before = here
        if not low < u < high:
            u = 0.5 * (low + high)
            if not low < u < high:
                return lagrangian.at(high), iteration, True  # adjacent floats: no point in between
    return lagrangian.at(high), MAX_ITERATIONS, False


def _halley(value: float, slope: float, bend: float) -> float:
    """The Halley step in u, given log(phi / target) and phi's derivatives divided by phi.

    A Newton step if the curvature is unknown or too large.
    """
    correction = 0.5 * value * (bend / slope / slope - 1.0)
    return value / slope / (1.0 - correction) if abs(correction) < 0.5 else value / slope


def _cubic(before: Point, here: Point, target: float) -> float:
    """u at the target, of the cubic in log phi through two points with their slopes."""
    width = math.log(before.divergence / here.divergence)
    if width == 0.0:
        return math.nan
    x = math.log(target / here.divergence) / width  # 0 here, 1 before
    start, end = (width * point.divergence / point.slope for point in (here, before))
    rise = before.u - here.u
    return here.u + x * (start + x * ((3.0 * rise - 2.0 * start - end) + x * (start + end - 2.0 * rise)))
