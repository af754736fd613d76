r"""Weighted maximum likelihood inside three trust regions, for mean, scale and shape (TR-CMA-ES).

In the frame of the belief N(0, I), candidates z_i with weights w_i, of which mu_eff count, and the path p of
`cones.steps.evolution_path`. Maximum likelihood would move the belief to

    mean   m = sum_i w_i z_i                 scale   s = |p|^2 / n
    shape  S = ( c_1 p p^T + c_mu sum_i w_i z_i z_i^T ) / (c_1 + c_mu)

Each part is moved as far as KL(old || new) <= bound. The loss of likelihood is linear in the natural parameters and the
divergence is reversed, so that moments move on straight lines:

    m <- c m                 1/2 |c m|^2                  <= `mean`  n / (2 mu_eff)
    s <- 1 + c (s - 1)       n/2 ( 1/s - 1 + log s )      <= `scale` 2 (c_s / d_s)^2
    R <- I + c (S - I)       1/2 sum( 1/r - 1 + log r )   <= `shape` k/2 ( c_1^2 + c_mu^2 / mu_eff )

with the largest c <= 1 each, and k degrees of freedom of the covariance. R stays positive definite for any weights,
negative ones included. The bounds are multiples of what noise alone uses up at the rates of CMA-ES.

Reference: Abdolmaleki, Price, Lau, Reis & Neumann, Deriving and Improving CMA-ES with Information Geometric Trust
Regions, GECCO 2017. The bounds and the weights, those of the estimate, are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cones.beliefs import Gaussian, Step, StepStatus
from cones.checks import check_positive, store
from cones.component import Storable, setting
from cones.estimators import Estimate
from cones.kernels.spans import elementwise, inner
from cones.solvers.solver import unmoved
from cones.steps.evolution_path import covariance_rates, extended_path, scale_rates
from cones.steps.rule import IterationInfo, StepRule
from cones.types import Vector

__all__ = ["TrCma", "TrCmaState", "share_within"]

HALVINGS = 60


@dataclass(frozen=True)
class TrCmaState(Storable):
    """The path, in the frame."""

    path: Vector


@dataclass(frozen=True)
class TrCma(StepRule):
    """Maximum likelihood of the better candidates, inside KL(old || new) balls for mean, scale and shape."""

    name = "tr_cma"
    beliefs = (Gaussian,)

    mean: float = setting(1.0, "Bound of the mean, relative to what noise uses up in CMA-ES.")
    scale: float = setting(1.0, "Bound of the scale, relative to what noise uses up in CMA-ES.")
    shape: float = setting(1.0, "Bound of the covariance, relative to what noise uses up in CMA-ES.")

    def __post_init__(self) -> None:
        store(self, **{name: check_positive(name, getattr(self, name)) for name in ("mean", "scale", "shape")})

    def propose(
        self, state: TrCmaState | None, belief: Gaussian, estimate: Estimate, info: IterationInfo
    ) -> tuple[Step[Any], TrCmaState]:
        n, samples, gradient = belief.dim, estimate.effective_samples, estimate.gradient
        path = np.zeros(n, belief.mean.dtype) if state is None else state.path
        if not estimate.noise.mean > 0.0 or not inner(gradient.mean, gradient.mean) > 0.0:  # all losses tied
            zero = unmoved(gradient, StepStatus.ZERO_GRADIENT)
            return zero._replace(shift=np.zeros_like(belief.mean)), TrCmaState(path)
        unit = math.sqrt(n / samples) / estimate.noise.mean  # absolute weights that sum to 1
        a: Vector = elementwise(lambda part: unit * part, gradient.mean)
        path = extended_path(path, a, samples)

        energy = 0.5 * inner(a, a)
        of_mean = min(1.0, math.sqrt(self.mean * 0.5 * n / samples / energy))

        forgetting, damping = scale_rates(n, samples)
        likely = np.array([inner(path, path) / n - 1.0])
        of_scale = share_within(likely, 2.0 * self.scale * (forgetting / damping) ** 2 / n)
        log_scale = math.log1p(of_scale * float(likely[0]))

        one, all_ = covariance_rates(n, samples)
        total = one + all_
        # The ascent step is the negative of the descent step, so this is I - S.
        change = gradient.covariance.map(lambda values: (one + 2.0 * all_ * unit * values) / total)
        change = change.plus_outer(path, -one / total)
        bound = self.shape * 0.5 * belief.covariance_freedom * (one * one + all_ * all_ / samples)
        of_shape = share_within(-change.spectrum(), bound)
        step: Step[Any] = Step(
            shift=belief.from_frame(elementwise(lambda part: of_mean * part, a)),
            log_ratio=change.map(lambda values: -np.log1p(-of_shape * values) - log_scale),
            status=StepStatus.OPTIMAL,
            multiplier=1.0 / of_shape - 1.0,
            gap=0.0,
            columns={
                "mean_radius": of_mean * math.sqrt(energy),
                "path_length": math.sqrt(inner(path, path) / n),
            },
        )
        return step, TrCmaState(path)


def share_within(changes: Vector, bound: float) -> float:
    """The largest c <= 1 with 1/2 sum( 1/r - 1 + log r ) <= bound for the ratios r = 1 + c changes."""
    values = np.asarray(changes, np.float64)

    def divergence(share: float) -> float:
        ratios = 1.0 + share * values
        if not ratios.min() > 0.0:
            return math.inf
        return 0.5 * float((np.log1p(share * values) - share * values / ratios).sum())

    low, high = 0.0, 1.0
    if divergence(1.0) <= bound:
        return 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if divergence(middle) <= bound else (low, middle)
    return low
