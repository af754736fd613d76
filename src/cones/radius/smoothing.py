r"""The radius of the scale's ball as in `SignalRatio`, with one plan for smooth losses and one for ripples.

Let s be the trace of B in units of its noise, m the length of the mean's step in the frame, sigma the spread, r the
root mean square distance to the minimum per coordinate and V the variance of the losses. With the mean's radius in
equilibrium, s / m = sigma^2 / r^2 (see `signal_ratio`). The curvature's part of V is 2 n sigma^4, which is s^2 / N of
it; the slope's part is 4 n sigma^2 r^2, which is 2 m s / N of it. So a quadratic explains the share

    e = (s_bar^2 + 2 m s_bar) / N,     e_bar <- e_bar + 0.02 (e - e_bar),  1 at first

of V. The rest is ripples or noise. The spread follows

    log sigma <- log sigma - K sign(s_bar) sqrt( max(0, |s_bar| - theta m) / sqrt(N) )

**While e_bar is above 1/2** the loss is smooth. theta falls from 0.7 to 0.05 over the first 70% of the budget: a spread
near the distance shows the curvatures, and the shape is learnt.

**Once e_bar is below 1/2** the loss has ripples, unless the shape is being learnt: then the coordinates differ. With
pairs the mean's signal is 4 sigma^2 r^2 against ripples of a constant height, so a wider spread sees the slope better
and the mean is faster. theta is 1.5, and where s_bar is below theta m and beyond its noise the spread grows,

    log sigma <- log sigma + K (1 - e) (theta m - s_bar) / sqrt(N)

by at most a factor of 3 in all. After 20% of the budget theta is 0.05: the spread falls, the mean goes to the bottom of
the ripple that it has reached, and a run that is stopped soon after has something to show.

Without a budget there is no such plan, and the control is `SignalRatio`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cones.component import Storable
from cones.radius.control import EstimateStats, Radius, RadiusControl
from cones.radius.signal_ratio import LARGEST_CHANGE, SignalRatio

__all__ = ["Smoothing", "SmoothingState"]

# theta at first, at last, and the part of the budget over which it falls.
THETA, THETA_AT_LAST, PART = 0.7, 0.05, 0.7
# theta over ripples, and the part of the budget after which they are no longer smoothed.
THETA_OVER_RIPPLES, RELEASED = 1.5, 0.2
# The average explained share below which a loss has ripples, and the weight of one iteration in it. The mean's radius
# needs some 40 iterations to find its equilibrium; before, the share is too low.
SMOOTH, AVERAGED = 0.5, 0.02
# The shape's radius starts at 0.05 and grows where coordinates differ. Then it is curvatures that no sphere explains.
LEARNT = 0.075
# Growth of the spread: in all, of its logarithm per iteration, and the deviations of noise that the signal must exceed.
LARGEST_GROWTH, FASTEST_GROWTH, BEYOND_NOISE = 3.0, 0.1, 3.0
SIGNAL_RATIO = SignalRatio()


@dataclass(frozen=True)
class SmoothingState(Storable):
    """The averages of the signal and of the explained share, whether ripples were found, and log of the growth."""

    strength: float = 0.0
    explained: float = 1.0
    rippled: bool = False
    growth: float = 0.0


@dataclass(frozen=True)
class Smoothing(RadiusControl[SmoothingState]):
    """Like `signal_ratio`, with a wider spread over ripples until a fifth of the budget is spent."""

    name = "smoothing"

    def start(self, stats: EstimateStats) -> SmoothingState:
        return SmoothingState()

    def radius(self, state: SmoothingState, stats: EstimateStats) -> tuple[Radius, SmoothingState]:
        if math.isinf(stats.budget):
            radius, strength = SIGNAL_RATIO.radius(state.strength, stats)
            return radius, SmoothingState(strength)
        rate, samples, travel = SIGNAL_RATIO.rate_of(stats), stats.samples, stats.travel
        last = float(stats.estimate[0]) / stats.noise if stats.noise else 0.0  # all losses tied
        averaged = max(0.1, rate)
        strength = state.strength + averaged * (last - state.strength)
        share = min(1.0, max(strength, 0.0) * (strength + 2.0 * travel) / samples)
        explained = state.explained + AVERAGED * (share - state.explained)
        rippled = (state.rippled or explained < SMOOTH) and stats.shape < LEARNT

        theta, growth = self._theta(stats.spent / stats.budget, rippled), 0.0
        drive = max(0.0, abs(strength) - theta * travel) / math.sqrt(samples)
        change = math.copysign(min(rate * math.sqrt(drive), LARGEST_CHANGE), -strength)
        if rippled and BEYOND_NOISE * math.sqrt(0.5 * averaged) < strength < theta * travel:
            growth = rate * (1.0 - share) * (theta * travel - strength) / math.sqrt(samples)
            growth = min(growth, FASTEST_GROWTH, math.log(LARGEST_GROWTH) - state.growth)
            change = growth
        # The ball's step follows the last estimate, and the average decides which way.
        radius = Radius(-change * math.copysign(math.sqrt(stats.dim), last))
        return radius, SmoothingState(strength, explained, rippled, state.growth + growth)

    @staticmethod
    def _theta(spent: float, rippled: bool) -> float:
        """theta after this part of the budget."""
        if rippled:
            return THETA_OVER_RIPPLES if spent < RELEASED else THETA_AT_LAST
        return max(THETA_AT_LAST, THETA * (1.0 - spent / PART))
