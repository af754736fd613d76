r"""The radius of the scale's ball from the signal of its estimate, relative to the mean's step.

Let s be the trace of B in units of its noise, m the length of the mean's step in the frame, sigma the spread and r the
root mean square distance to the minimum per coordinate. On a quadratic with noise or ripples of total variance V, with
the mean's radius in equilibrium,

    m = (r / sigma) sqrt(N / 2) * sqrt(4 n sigma^2 r^2 / V)        s = sqrt(N) * sqrt(2 n sigma^4 / V)

so that s / m = sigma^2 / r^2: the unknown V cancels. Shrinking the spread only while s exceeds theta m therefore holds
sigma at sqrt(theta) times the distance, whatever the noise:

    s_bar <- s_bar + max(0.1, K) (s - s_bar)
    log sigma <- log sigma - K / sqrt(N) * sign(s_bar) max(0, |s_bar| - theta m)

K = rate N / n. The mean contracts by at most N / (2 n) per iteration with independent candidates and N / (4 n) with
pairs. A kink has no curvature away from it, so there the relation fails: the spread runs ahead unless it is no faster
than the mean, rate = 1/4.

While the mean takes large steps, the spread stays. Once the mean no longer moves, the spread can shrink. Below the
threshold the spread does not change, so losses that are pure noise do not move it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cones.checks import check_positive, store
from cones.component import setting
from cones.radius.control import EstimateStats, Radius, RadiusControl

__all__ = ["SignalRatio"]

# theta: a spread near the distance smooths ripples. With a budget, theta falls from THETA to THETA_AT_LAST over the
# first PART of it; the rest suffices to converge in the basin found.
THETA, THETA_AT_LAST, PART = 0.7, 0.05, 0.45
THETA_WITHOUT_BUDGET = 0.3
# K, the rate at full signal, is N / n, twice the contraction rate of the mean. With a budget below this many
# evaluations per dimension it is larger, so that the spread converges in time.
EVALUATIONS_PER_DIMENSION = 100
LARGEST_RATE = 0.6
LARGEST_CHANGE = 0.3  # of log sigma per iteration


@dataclass(frozen=True)
class SignalRatio(RadiusControl[float]):
    """Holds the spread at a fraction of the mean's distance to the minimum."""

    name = "signal_ratio"

    rate: float = setting(1.0, "Largest rate of the spread, relative to K = N / n.")

    def __post_init__(self) -> None:
        store(self, rate=check_positive("rate", self.rate))

    def start(self, stats: EstimateStats) -> float:
        return 0.0

    def radius(self, state: float, stats: EstimateStats) -> tuple[Radius, float]:
        rate, theta = self.rate_of(stats), self._theta(stats)
        last = float(stats.estimate[0]) / stats.noise if stats.noise else 0.0  # all losses tied
        strength = state + max(0.1, rate) * (last - state)
        drive = max(0.0, abs(strength) - theta * stats.travel)
        change = min(rate / math.sqrt(stats.samples) * drive, LARGEST_CHANGE)
        agrees = math.copysign(1.0, strength) * math.copysign(1.0, last)
        return Radius(agrees * change * math.sqrt(stats.dim)), strength

    def rate_of(self, stats: EstimateStats) -> float:
        """K: the largest change of log sigma in this iteration."""
        per_evaluation = max(1.0 / stats.dim, EVALUATIONS_PER_DIMENSION / stats.budget)
        return min(LARGEST_RATE, self.rate * stats.samples * per_evaluation)

    def _theta(self, stats: EstimateStats) -> float:
        if math.isinf(stats.budget):
            return THETA_WITHOUT_BUDGET
        return max(THETA_AT_LAST, THETA * (1.0 - stats.spent / (PART * stats.budget)))
