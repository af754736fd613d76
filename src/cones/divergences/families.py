r"""The step problem of exponential families and of products, for the ball KL(new || old).

In mean parameters the loss is linear with gradient g, and at every multiplier the maximiser of the Lagrangian moves the
natural parameters along it, eta' = eta + g / lambda (see `cones.beliefs.families.family`). With d = g / lambda,

    d phi / d log lambda = -Var'( <d, x> )

For bounded variables phi has a limit as lambda goes to 0. A ball beyond it holds every belief, and the step ends at the
edge of the family.

In a product all factors have the same multiplier; phi, its derivatives and the gains are sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cones.beliefs import FamilyGradient, ProductMatrix, Step
from cones.divergences.divergence import Lagrangian, Point

__all__ = ["FamilyLagrangian", "ProductLagrangian"]

# Multipliers below this, relative to the gradient, count as zero.
SMALLEST = 1e-290


class FamilyLagrangian(Lagrangian):
    """phi and its slope, for the gradient divided by `scale`, its largest magnitude."""

    smallest = 0.0

    def __init__(self, gradient: FamilyGradient, radius: float) -> None:
        self.belief, self.radius = gradient.belief, radius
        self.scale = float(np.abs(gradient.mean).max())
        self.gradient = gradient.mean / self.scale

    def bracket(self) -> tuple[float, float, float]:
        """The first guess is exact for a small ball; the upper bound grows until the step fits into the ball."""
        energy = self.radius**2
        spread = math.sqrt(float(self.gradient @ self.belief.covariance_times(self.gradient)))
        guess = max(spread / (math.sqrt(2.0) * self.radius), 2.0 * SMALLEST)
        high = guess
        while not self.at(math.log(high)).divergence < energy:
            high *= 8.0
        return math.log(SMALLEST), math.log(guess), math.log(high) + 1e-9

    def at(self, u: float) -> Point:
        multiplier = math.exp(u)
        tilt = self.belief.tilted(self.gradient / multiplier)
        return Point(u, multiplier, tilt.kl, -tilt.variance, math.nan, tilt.mean)

    def step(self, point: Point) -> Step[Any]:
        return Step(
            shift=self.gradient / point.multiplier,
            divergence=point.divergence,
            multiplier=point.multiplier * self.scale,
            objective=float(self.gradient @ (point.extra - self.belief.mean)) * self.scale,
            gap=point.multiplier * (self.radius**2 - point.divergence) * self.scale,
        )


class ProductLagrangian(Lagrangian):
    """The sum of Lagrangians that share a multiplier; None for a factor whose gradient is zero."""

    def __init__(self, parts: Sequence[tuple[Any, Any]], radius: float) -> None:
        """`parts` are pairs of the Lagrangian of a factor, or None, and its gradient."""
        self.parts, self.radius = parts, radius
        self.scale = max(part.scale for part, _ in parts if part is not None)
        # Everything below is in units of the scale; so are the multipliers.
        self.units = [0.0 if part is None else part.scale / self.scale for part, _ in parts]
        self.smallests = [0.0 if part is None else part.smallest * unit for (part, _), unit in self._pairs()]
        self.smallest = max(self.smallests)

    def _pairs(self) -> zip[tuple[tuple[Any, Any], float]]:
        return zip(self.parts, self.units, strict=True)

    def bracket(self) -> tuple[float, float, float]:
        """Each factor alone must fit into the ball; all of them do if each takes its share of it."""
        lows, highs = [], []
        for (part, _), unit, own in zip(self.parts, self.units, self.smallests, strict=True):
            if part is not None and unit > 0.0:
                low, _, high = part.bracket()
                lows.append(max(own + unit * math.exp(low) - self.smallest, SMALLEST))
                highs.append(max(own + unit * math.exp(high) - self.smallest, SMALLEST))
        low, high = max(lows), max(highs)
        while not self.at(math.log(high)).divergence < self.radius**2:
            high *= 8.0
        return math.log(low) - 1e-9, math.log(math.sqrt(low) * math.sqrt(high)), math.log(high) + 1e-9

    def at(self, u: float) -> Point:
        excess = math.exp(u)
        divergence, slope, bend = 0.0, 0.0, 0.0
        points: list[Point | None] = []
        for (part, _), unit, own in zip(self.parts, self.units, self.smallests, strict=True):
            if part is None or unit == 0.0:
                points.append(None)
                continue
            above = (self.smallest - own) + excess  # lambda - the smallest multiplier of this factor
            point, share = part.at(math.log(above) - math.log(unit)), excess / above
            divergence += point.divergence
            slope += point.slope * share
            bend += point.bend * share**2 + point.slope * share * (1.0 - share)
            points.append(point)
        return Point(u, self.smallest + excess, divergence, slope, bend, points)

    def step(self, point: Point) -> Step[Any]:
        steps = [
            None if own is None else part.step(own) for (part, _), own in zip(self.parts, point.extra, strict=True)
        ]
        shifts, blocks = [], []
        for step, (_, gradient) in zip(steps, self.parts, strict=True):
            zero = gradient.covariance
            shifts.append(np.zeros_like(gradient.mean) if step is None else step.shift)
            blocks.append(step.log_ratio if step else None if zero is None else zero.map(np.zeros_like))
        return Step(
            shift=np.concatenate(shifts),
            log_ratio=None if all(block is None for block in blocks) else ProductMatrix(tuple(blocks)),
            divergence=point.divergence,
            multiplier=point.multiplier * self.scale,
            objective=sum(step.objective for step in steps if step is not None),
            gap=point.multiplier * (self.radius**2 - point.divergence) * self.scale,
        )
