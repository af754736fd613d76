r"""Augmented random search: a step of the mean in units of the losses' standard deviation.

With the estimate a of the mean's gradient in the frame, and s the standard deviation of the utilities behind it,

    shift = step_size 2 L a / (s d),     d = sqrt( tr(L L^T) / n )

and the covariance stays. For L = d I and the estimator `best_directions` with utilities linear in the losses, this is
the paper's update

    x <- x - step_size / (b s) sum_k ( f(x + d z_k) - f(x - d z_k) ) z_k          over the b best directions

With a deviation per coordinate it is the same in coordinates that are divided by these. From the noise level of an
estimate that is worth N samples, s^2 = N ( noise.mean^2 + 2 noise.scale^2 ) / (2 n).

Reference: Mania, Guy & Recht, Simple Random Search of Static Linear Policies is Competitive for Reinforcement Learning,
NeurIPS 2018.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cones.beliefs import Gaussian, Step
from cones.checks import check_positive, store
from cones.component import setting
from cones.estimators import Estimate
from cones.steps.rule import IterationInfo, StepRule

__all__ = ["Ars"]


@dataclass(frozen=True)
class Ars(StepRule):
    """The gradient over the standard deviation of the losses; the covariance stays (augmented random search)."""

    name = "ars"
    beliefs = (Gaussian,)

    step_size: float = setting(0.02, "Step size, the paper's alpha.")

    def __post_init__(self) -> None:
        store(self, step_size=check_positive("step_size", self.step_size))

    def propose(self, state: None, belief: Gaussian, estimate: Estimate, info: IterationInfo) -> tuple[Step[Any], None]:
        gradient, noise = estimate.gradient, estimate.noise
        # hypot: squares of huge losses would overflow.
        deviation = math.hypot(noise.mean, math.sqrt(2.0) * noise.scale)
        deviation *= math.sqrt(estimate.effective_samples / (2.0 * belief.dim))
        factor = 2.0 * self.step_size / belief.spread() / deviation if deviation > 0.0 else 0.0
        shift = np.asarray(factor * belief.from_frame(gradient.mean))
        return Step(shift=shift, log_ratio=gradient.covariance.map(np.zeros_like)), None
