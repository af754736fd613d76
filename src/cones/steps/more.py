r"""Model-based relative entropy stochastic search (MORE): a quadratic model, a KL ball and a bound on the entropy.

In the frame of the belief N(0, I), with the model c + g^T z + 1/2 z^T H z of the loss,

    minimize    <g, m> + 1/2 <H, R + m m^T>                    the model's mean under N(m, R)
    subject to  KL = 1/2 ( |m|^2 + tr R - n - log det R ) <= radius^2
                -1/2 log det R <= loss of entropy = (1 - rate) ( entropy - least_entropy )

For multipliers eta > max(0, -min h) and omega >= 0, h the eigenvalues of H and p = eta + h, the solution is

    m = -(eta I + H)^-1 g,     R = (eta + omega) (eta I + H)^-1

For given eta the entropy's bound gives omega in closed form, log(eta + omega) = mean(log p) - 2 loss / n, or omega = 0
if the entropy is within its bound. KL falls with eta, and eta follows from KL = radius^2: the dual has one unknown. If
even the smallest eta stays in the ball, only the entropy is bounded.

The model is that of the estimate (`estimator="quadratic"`). Where there is none yet, Stein's identity gives one from
the gradient: g = a, H = 2 B.

Reference: Abdolmaleki, Lioutikov, Peters, Lau, Reis & Neumann, Model-Based Relative Entropy Stochastic Search, NeurIPS
2015. `rate` and `least_entropy` are the paper's gamma and H_0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cones.beliefs import (
    DiagonalGaussian,
    DiagonalMatrix,
    FrameGradient,
    FrameMatrix,
    FullGaussian,
    Gaussian,
    SpectralMatrix,
    Step,
    StepStatus,
)
from cones.checks import check_fraction, check_number, check_positive, store
from cones.component import setting
from cones.divergences import Lagrangian, Point
from cones.estimators import Estimate
from cones.solvers.root import SMALLEST_U, find_multiplier
from cones.solvers.solver import unmoved
from cones.steps.rule import IterationInfo, StepRule
from cones.types import Vector

__all__ = ["More", "MoreLagrangian", "solve_more"]


@dataclass(frozen=True)
class More(StepRule):
    """The minimum of a quadratic model's mean in a KL ball, with a bound on the loss of entropy."""

    name = "more"
    beliefs = (DiagonalGaussian, FullGaussian)

    radius: float = setting(1.0, "Radius of the ball KL <= radius^2.")
    rate: float = setting(0.99, "Share of the entropy above `least_entropy` that an iteration keeps.")
    least_entropy: float = setting(-75.0, "Entropy that the belief does not fall below, in nats.")

    def __post_init__(self) -> None:
        store(
            self,
            radius=check_positive("radius", self.radius),
            rate=check_fraction("rate", self.rate),
            least_entropy=check_number("least_entropy", self.least_entropy),
        )

    def propose(self, state: None, belief: Gaussian, estimate: Estimate, info: IterationInfo) -> tuple[Step[Any], None]:
        model, gradient = estimate.model, estimate.gradient
        if model is not None:
            values, basis = np.linalg.eigh(model.curvature)
            gradient = FrameGradient(model.gradient, SpectralMatrix(0.5 * values, basis))
        entropy = belief.entropy()
        loss = (1.0 - self.rate) * max(entropy - self.least_entropy, 0.0)
        step = solve_more(gradient, self.radius, loss)
        columns = {"entropy": entropy, "model_leads": float(model is not None)}
        return step._replace(shift=belief.from_frame(step.shift), columns=columns), None


def solve_more(gradient: FrameGradient, radius: float, loss: float) -> Step[Any]:
    """The descent step for the model with gradient g = a and curvature H = 2 B, negated as all steps are."""
    a, values = gradient.mean, gradient.covariance.spectrum()
    scale = max(float(np.abs(a).max()), float(np.abs(values).max()))
    if not scale < math.inf:
        return unmoved(gradient, StepStatus.FAILED)
    if scale == 0.0:
        return unmoved(gradient, StepStatus.ZERO_GRADIENT)
    lagrangian = MoreLagrangian(gradient, radius, loss, scale)
    point, iterations, converged = find_multiplier(lagrangian, radius)
    status = StepStatus.OPTIMAL if converged else StepStatus.INACCURATE
    return lagrangian.step(point)._replace(iterations=iterations, status=status)


class MoreLagrangian(Lagrangian):
    """KL as a function of u = log(eta - smallest eta), for the model divided by `scale`."""

    def __init__(self, gradient: FrameGradient, radius: float, loss: float, scale: float) -> None:
        self.matrix: FrameMatrix = gradient.covariance
        self.radius, self.loss, self.scale = radius, loss, scale
        self.h: Vector = self.matrix.spectrum() / (0.5 * scale)
        self.g, self.outside = _in_axes(gradient.mean / scale, self.matrix)
        self.smallest = max(0.0, -float(self.h.min()))

    def bracket(self) -> tuple[float, float, float]:
        high = 4.0 * max(
            float(np.linalg.norm(self.g)) / self.radius,
            float(np.abs(self.h).max()) * max(1.0, math.sqrt(self.h.size) / self.radius),
        )
        low = high
        while self.at(math.log(low)).divergence < self.radius**2 and math.log(low) > SMALLEST_U:
            low *= 1e-3
        return math.log(low), 0.5 * (math.log(low) + math.log(high)), math.log(high)

    def at(self, u: float) -> Point:
        excess = math.exp(u)
        eta = self.smallest + excess
        poles = (self.smallest + self.h) + excess  # eta + h
        shift, inverse = self.g / poles, 1.0 / poles
        # log r - log(eta / p) is log(1 + omega / eta); h / p = 1 - eta / p
        logs = math.log(eta) - np.log(poles)
        logs = np.where(np.abs(self.h) < 0.5 * eta, -np.log1p(self.h / eta), logs)
        extra = max(0.0, -2.0 * self.loss / self.h.size - float(logs.mean()))
        logs = logs + extra
        growth = np.expm1(logs)
        divergence = 0.5 * float(shift @ shift + (growth - logs).sum())
        # d log r / d eta is mean(1/p) - 1/p with the entropy at its bound, else 1/eta - 1/p
        of_all = float(inverse.mean()) if extra else 1.0 / eta
        slope = float(-(shift * shift) @ inverse + 0.5 * growth @ (of_all - inverse)) * excess
        return Point(u, eta, divergence, slope, math.nan, (shift, logs, eta * math.expm1(extra)))

    def step(self, point: Point) -> Step[Any]:
        shift, logs, omega = point.extra
        growth = np.expm1(logs)
        gain = float(self.g @ shift - 0.5 * self.h @ (growth + shift * shift))
        slack = point.multiplier * (self.radius**2 - point.divergence)
        if omega:
            slack += omega * (self.loss + 0.5 * float(logs.sum()))
        rest = self.matrix.with_spectrum(-logs)
        return Step(
            shift=_from_axes(shift, self.matrix, self.outside),
            log_ratio=rest,
            divergence=point.divergence,
            multiplier=point.multiplier * self.scale,
            objective=gain * self.scale,
            gap=slack * self.scale,
        )


def _in_axes(vector: Vector, matrix: FrameMatrix) -> tuple[Vector, Vector | None]:
    """Coordinates along the axes of `spectrum()`, and the unit vector of what the basis does not span."""
    if isinstance(matrix, DiagonalMatrix):
        return vector, None
    inside = matrix.project(vector)  # type: ignore[attr-defined]
    left = vector.size - inside.size
    if not left:
        return inside, None
    outside = vector - matrix.combination(inside)  # type: ignore[attr-defined]
    length = float(np.linalg.norm(outside))
    return np.concatenate([inside, [length], np.zeros(left - 1)]), outside / length if length else outside


def _from_axes(coordinates: Vector, matrix: FrameMatrix, outside: Vector | None) -> Vector:
    if isinstance(matrix, DiagonalMatrix):
        return coordinates
    rank = matrix.values.size
    inside: Vector = matrix.combination(coordinates[:rank])  # type: ignore[attr-defined]
    return inside if outside is None else inside + coordinates[rank] * outside
