r"""KL steps fed by an evolution path and, where it predicts the losses, by a quadratic model.

With the estimate (a, B) of a descent direction in the frame, scaled so that the absolute weights of the mean sum to 1,
and worth mu_eff samples, and chi = E|N(0, I)|:

    p  <- (1 - c_s) p + sqrt(c_s (2 - c_s) mu_eff) a             the path: a gradient estimate with memory
    log sigma grows by (c_s / d_s) (|p| / chi - 1)               candidates agree: larger steps

**The step of the path.** The gradient is a for the mean, and X / 2 for the covariance:

    m = a,     X = c_1 (p p^T - I) + 2 c_mu B,     R = I + X where an axis grows, (I - X)^-1 where it shrinks

that is, log R = sign(X) log(1 + |X|). The KL step at multiplier 1 is (I - X)^-1 throughout, and the update of CMA-ES is
I + X. To first order all are equal. With the noise of large populations the first lets the volume of the belief drift
upwards and the second downwards; this one is odd in X and does neither. It is positive definite for any weights, so the
rates may exceed those of CMA-ES. They are `rate` times

    c_1 = 2 / ((n + 1.3)^2 + mu_eff)        c_mu = 2 (mu_eff - 7/4 + 1/mu_eff) / ((n + 2)^2 + mu_eff)

and `rate` is max(1, log(n) / 2) by default. (Hansen, The CMA Evolution Strategy: A Tutorial, 2016, has the same paths
and rates with an additive update.)

**The step of the model.** Where the estimate has a quadratic model whose rank correlation tau with the next losses is
above `threshold` on average, the step is the solution of the step problem linear in the moments
(`cones.solvers.moments`) in the ball KL <= r n. The model's own evidence sets r:

    r <- clip( r exp( (tau - 1/2) / 2 ), 0.01, 0.5 )

A convex model can only shrink the covariance. So sigma also grows as the path says, and the path is extended in every
iteration, whichever step is taken: along a valley the model's steps are short of its end, the candidates go on pointing
along it, and the belief stretches.

**Bounds.** The mean stays in the box: a step of the path is cut off at its faces, and a model whose step leaves the box
does not lead. Deviations stay below half of the width between two bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cones.beliefs import FrameGradient, Gaussian, SpectralMatrix, Step, StepStatus
from cones.checks import check_fraction, check_positive, store
from cones.component import Storable, setting
from cones.divergences import KL, Ball
from cones.estimators import Estimate, QuadraticModel
from cones.kernels.spans import elementwise, inner
from cones.solvers import Dual
from cones.solvers.solver import unmoved
from cones.space.bounds import Box
from cones.steps.rule import IterationInfo, StepRule
from cones.types import Vector

__all__ = ["EvolutionPath", "EvolutionPathState", "covariance_rates", "extended_path", "scale_rates"]

# r: the divergence per dimension that a model's step may have.
START, SMALLEST, LARGEST, GAIN = 0.25, 0.01, 0.5, 0.5
LARGEST_GROWTH = 1.0  # of log sigma per iteration
DUAL = Dual()


@dataclass(frozen=True)
class EvolutionPathState(Storable):
    """The path, in the frame, and the divergence per dimension of a model's step."""

    path: Vector
    per_dimension: float = START


@dataclass(frozen=True)
class EvolutionPath(StepRule):
    """Mean, scale and shape by an evolution path, or by a quadratic model while it predicts the losses."""

    name = "evolution_path"
    beliefs = (Gaussian,)

    rate: float = setting(0.0, "Learning rate of the covariance relative to CMA-ES; 0 is max(1, log(n) / 2).")
    threshold: float = setting(0.5, "Average rank correlation from which on the model leads.")

    def __post_init__(self) -> None:
        store(
            self,
            rate=0.0 if self.rate == 0.0 else check_positive("rate", self.rate),
            threshold=check_fraction("threshold", self.threshold),
        )

    def propose(
        self, state: EvolutionPathState | None, belief: Gaussian, estimate: Estimate, info: IterationInfo
    ) -> tuple[Step[Any], EvolutionPathState]:
        n, samples = belief.dim, estimate.effective_samples
        if state is None:
            state = EvolutionPathState(np.zeros(n, belief.mean.dtype))
        gradient, model = estimate.gradient, estimate.model
        per_dimension = state.per_dimension if model is None else _radius(state.per_dimension, model)
        if not estimate.noise.mean > 0.0 or not inner(gradient.mean, gradient.mean) > 0.0:  # all losses tied
            zero = unmoved(gradient, StepStatus.ZERO_GRADIENT)
            return zero._replace(shift=np.zeros_like(belief.mean)), EvolutionPathState(state.path, per_dimension)
        unit = math.sqrt(n / samples) / estimate.noise.mean  # absolute weights that sum to 1
        a: Vector = elementwise(lambda part: unit * part, gradient.mean)

        forgetting, damping = scale_rates(n, samples)
        path = extended_path(state.path, a, samples)
        chi = math.sqrt(n) * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n * n))
        length = math.sqrt(inner(path, path)) / chi
        growth = min(forgetting / damping * (length - 1.0), LARGEST_GROWTH)
        largest = math.inf if info.box is None else _room(belief, info.box)

        leads = model is not None and model.agreement > self.threshold
        if leads:
            step = _model_step(model, math.sqrt(per_dimension * n), min(max(growth, 0.0), largest))
            leads = info.box is None or info.box.contains(belief.mean - belief.from_frame(step.shift))
        if not leads:
            step = self._path_step(FrameGradient(a, gradient.covariance), unit, path, samples, min(growth, largest))
        columns = {
            "path_length": length,
            "mean_radius": math.sqrt(0.5 * inner(step.shift, step.shift)),
            "model_leads": float(leads),
            "model_radius": math.sqrt(per_dimension * n) if model is not None else 0.0,
        }
        shift = belief.from_frame(step.shift)
        if info.box is not None:
            shift = belief.mean - info.box.clip(belief.mean - shift)
        return step._replace(shift=shift, columns=columns), EvolutionPathState(path, per_dimension)

    def _path_step(
        self, gradient: FrameGradient, unit: float, path: Vector, samples: float, growth: float
    ) -> Step[Any]:
        n = path.size
        rate = self.rate or max(1.0, 0.5 * math.log(n))
        of_path, of_all = covariance_rates(n, samples, rate)
        # The ascent step is the negative of the descent step, so this is -X.
        change = gradient.covariance.map(lambda values: of_path + 2.0 * of_all * unit * values)
        change = change.plus_outer(path, -of_path)

        def logs(values: Vector) -> Vector:
            return np.copysign(np.log1p(np.abs(values)), values) - 2.0 * growth

        log_ratio = change.map(logs)
        return Step(
            shift=gradient.mean,
            log_ratio=log_ratio,
            status=StepStatus.OPTIMAL,
            multiplier=1.0,
            gap=0.0,
        )


def scale_rates(n: int, samples: float) -> tuple[float, float]:
    """c_s and d_s of CMA-ES."""
    forgetting = (samples + 2.0) / (n + samples + 5.0)
    return forgetting, 1.0 + forgetting + 2.0 * max(0.0, math.sqrt(max(samples - 1.0, 0.0) / (n + 1.0)) - 1.0)


def covariance_rates(n: int, samples: float, rate: float = 1.0) -> tuple[float, float]:
    """c_1 and c_mu of CMA-ES times `rate`, at most 0.9."""
    of_path = rate * 2.0 / ((n + 1.3) ** 2 + samples)
    of_all = rate * 2.0 * max(samples - 1.75 + 1.0 / samples, 0.25) / ((n + 2.0) ** 2 + samples)
    return min(of_path, 0.9), min(of_all, 0.9)


def extended_path(path: Vector, a: Vector, samples: float) -> Vector:
    """The path after an estimate of the ascent direction whose absolute weights sum to 1."""
    forgetting, _ = scale_rates(path.size, samples)
    keep, add = 1.0 - forgetting, -math.sqrt(forgetting * (2.0 - forgetting) * samples)
    return np.asarray(elementwise(lambda p, part: keep * p + add * part, path, a))


def _room(belief: Gaussian, box: Box) -> float:
    """The growth of log sigma until a deviation is half of the width between two bounds.

    With larger ones, reflected candidates are spread evenly and say nothing about the scale.
    """
    width = box.upper - box.lower
    two_sided = np.isfinite(width) & (width > 0.0)
    if not two_sided.any():
        return math.inf
    share = 2.0 * float((belief.standard_deviations()[two_sided] / width[two_sided]).max())
    return -math.log(share) if share > 0.0 else math.inf


def _radius(per_dimension: float, model: QuadraticModel) -> float:
    if not model.predictions:
        return per_dimension
    return min(max(per_dimension * math.exp(GAIN * (model.tau - 0.5)), SMALLEST), LARGEST)


def _model_step(model: QuadraticModel, radius: float, growth: float) -> Step[Any]:
    """The descent step of the model, negated, with sigma grown as the path says."""
    values, basis = np.linalg.eigh(model.curvature)
    # Ascent on the negative model.
    gradient = FrameGradient(-model.gradient, SpectralMatrix(-0.5 * values, basis))
    step = DUAL.solve(gradient, Ball(KL(), radius, "mean_parameters"))
    return step._replace(shift=-step.shift, log_ratio=step.log_ratio.map(lambda logs: -logs - 2.0 * growth))
