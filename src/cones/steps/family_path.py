r"""Steps of exponential families along the natural gradient, with memory and a threshold.

With s the whitened score, Cov(x)^-1/2 sum_i u_i (x_i - mean), in units of its noise, each number has variance 1 if the
losses do not depend on the candidates:

    S <- (1 - c) S + sqrt(c (2 - c)) s                           the path, of variance 1 again
    eta <- eta - rate Cov(x)^-1/2 sign(S) max(0, |S| - threshold)

This is the step of the convex program, eta' = eta + g / lambda, at multiplier 1, for a gradient without what may be
noise. Without the threshold, variables that do not matter yet drift to either end (genetic drift of
estimation-of-distribution algorithms; Doerr & Krejca, Significance-Based Estimation-of-Distribution Algorithms, 2018).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cones.beliefs import ExponentialFamily, Step, StepStatus
from cones.checks import check_fraction, check_non_negative, check_positive, store
from cones.component import Storable, setting
from cones.estimators import Estimate
from cones.steps.rule import IterationInfo, StepRule
from cones.types import Vector

__all__ = ["FamilyPath", "FamilyPathState"]


@dataclass(frozen=True)
class FamilyPathState(Storable):
    """The path S."""

    path: Vector


@dataclass(frozen=True)
class FamilyPath(StepRule):
    """For families other than Gaussians: the natural gradient with memory, beyond a threshold for noise."""

    name = "family_path"
    beliefs = (ExponentialFamily,)

    rate: float = setting(0.15, "Length of a step, in standard deviations per unit of the path above the threshold.")
    threshold: float = setting(1.0, "What counts as noise, in standard deviations of the noise.")
    memory: float = setting(0.7, "Share of the path that is kept per iteration.")

    def __post_init__(self) -> None:
        store(
            self,
            rate=check_positive("rate", self.rate),
            threshold=check_non_negative("threshold", self.threshold),
            memory=check_fraction("memory", self.memory),
        )

    def propose(
        self, state: FamilyPathState | None, belief: ExponentialFamily, estimate: Estimate, info: IterationInfo
    ) -> tuple[Step[Any], FamilyPathState]:
        path = np.zeros(belief.dim) if state is None else state.path
        unit = estimate.noise.mean / math.sqrt(belief.freedom)
        gradient = estimate.gradient.mean
        if not unit > 0.0 or not gradient.any():
            return Step(shift=np.zeros(belief.dim), status=StepStatus.ZERO_GRADIENT), FamilyPathState(path)
        score = belief.whitened(belief.covariance_times(gradient)) / unit
        path = self.memory * path + math.sqrt(1.0 - self.memory**2) * score
        excess = np.sign(path) * np.maximum(0.0, np.abs(path) - self.threshold)
        columns = {"above_noise": float(np.count_nonzero(excess)) / belief.dim}
        shift = self.rate * belief.from_whitened(excess)
        return Step(shift=shift, status=StepStatus.OPTIMAL, multiplier=1.0, gap=0.0, columns=columns), FamilyPathState(
            path
        )
