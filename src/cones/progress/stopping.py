"""Stop criteria. Each has a name, a limit, a message and a status code as in `scipy.optimize`."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cones.component import Component, setting
from cones.kernels.spans import inner
from cones.progress.history import History
from cones.progress.state import State

__all__ = [
    "CALLBACK",
    "COLLAPSED",
    "DIVERGED",
    "ENDS_OF_DESCENT",
    "FAILED_IN_A_ROW",
    "FAULTS",
    "INTERRUPTED",
    "NO_FINITE_LOSS",
    "NO_STEP",
    "NO_STEP_IN_A_ROW",
    "RUNNING",
    "SEARCHED",
    "STAGNATION",
    "Criterion",
    "FTarget",
    "FTol",
    "MaxFev",
    "MaxIter",
    "MaxTime",
    "Stagnation",
    "StopReason",
    "XTol",
    "first_met",
    "share_spent",
]


@dataclass(frozen=True)
class StopReason:
    """Why a run stopped. `success` is True if a target or a tolerance was met, and False if a budget was spent."""

    name: str
    message: str
    status: int
    success: bool = False


RUNNING = StopReason("running", "The run has not stopped.", -1)
# After a first finite loss, a run stops when this many populations in a row have none.
FAILED_IN_A_ROW = 10
NO_FINITE_LOSS = StopReason(
    "no_finite_loss",
    f"No loss was finite in the first population, or in {FAILED_IN_A_ROW} populations in a row.",
    5,
)
CALLBACK = StopReason("callback", "The callback raised StopIteration.", 6)
DIVERGED = StopReason(
    "diverged", "The belief left the range of floats; try another sigma0 or smaller learning rates.", 8
)
COLLAPSED = StopReason(
    "collapsed", "The belief is too narrow for floats, in all directions or along one axis.", 9, True
)
# A run stops when its solver has failed this many times in a row.
NO_STEP_IN_A_ROW = 10
NO_STEP = StopReason("no_step", f"The solver found no step in the last {NO_STEP_IN_A_ROW} iterations.", 10)
FAULTS = {reason.name: reason for reason in (NO_FINITE_LOSS, DIVERGED, COLLAPSED, NO_STEP)}
# Reasons that end a descent: the belief cannot improve further, but a restart may.
ENDS_OF_DESCENT = ("xtol", "ftol", "stagnation", "plateau", "diverged", "collapsed", "no_finite_loss")
INTERRUPTED = StopReason("interrupted", "Interrupted from the keyboard.", 7)
SEARCHED = StopReason("searched", "The search along the axes has ended, and no restart follows.", 12)


@dataclass(frozen=True)
class Criterion(Component, ABC):
    """A condition on the state and the history of a run."""

    kind: ClassVar[str] = "criterion"
    limit: float = setting(sentence="The limit.")
    text: ClassVar[str]
    status: ClassVar[int]
    success: ClassVar[bool] = False

    @abstractmethod
    def met(self, state: State, history: History) -> bool: ...

    def reason(self) -> StopReason:
        return StopReason(self.name, self.text.format(limit=self.limit), self.status, self.success)


@dataclass(frozen=True)
class FTarget(Criterion):
    name, status, success = "ftarget", 0, True
    text = "The loss reached ftarget = {limit:g}."

    def met(self, state: State, history: History) -> bool:
        return state.best_fun <= self.limit and state.feasible


@dataclass(frozen=True)
class XTol(Criterion):
    """Met if the belief's standard deviations and its mean's last step are at most the limit, or lost in rounding.

    A deviation is lost in rounding if a fifth of it does not change the mean. Beside integers, bits and categories,
    whose spread has a lower bound, the deviations of the real numbers count alone.
    """

    name, status, success = "xtol", 0, True
    text = "The belief's largest standard deviation and its mean's last step are within xtol = {limit:g}."

    def met(self, state: State, history: History) -> bool:
        if not len(history):
            return False
        if "spread_of_numbers" in history:
            return state.iteration > state.began and history.latest("spread_of_numbers") <= self.limit
        mean = state.belief.mean
        rounding = 2.5 * float(np.finfo(mean.dtype).eps)
        if history.latest("step") > self.limit + rounding * math.sqrt(inner(mean, mean)):
            return False
        deviations = state.belief.standard_deviations()
        return bool((deviations <= np.maximum(self.limit, rounding * np.abs(mean))).all())


# Losses that differ by less than this share of their size are equal up to the rounding of a sum of many terms.
ROUNDING = 1e-13


@dataclass(frozen=True)
class FTol(Criterion):
    """Met if the losses of the population, and the mean losses of ten iterations, differ by at most the limit.

    Differences within the rounding of the losses themselves count as none.
    """

    name, status, success = "ftol", 0, True
    text = "Losses within the population and over the last ten iterations differ by at most ftol = {limit:g}."

    def met(self, state: State, history: History) -> bool:
        if state.iteration - state.began < 10:
            return False
        limit = max(self.limit, ROUNDING * abs(history.latest("mean_loss")))
        # `not <=` so that NaN (no finite loss) is not met.
        if not history.latest("loss_deviation") <= limit < math.inf:  # the mean of finite losses may overflow
            return False
        return bool(np.ptp(history.last("mean_loss", 10)) <= limit)


@dataclass(frozen=True)
class MaxFev(Criterion):
    """Met before the iteration that would exceed the budget."""

    reserve: int = setting(0, "Evaluations that are kept for the end of the run.")
    name, status = "maxfev", 1
    text = "The budget of maxfev = {limit:g} evaluations is spent."

    def met(self, state: State, history: History) -> bool:
        return state.evaluations + state.popsize > self.limit - self.reserve


@dataclass(frozen=True)
class MaxIter(Criterion):
    implied: bool = setting(False, "True if no other budget was given.")
    name, status = "maxiter", 2
    text = "The budget of maxiter = {limit:g} iterations is spent."

    def met(self, state: State, history: History) -> bool:
        return state.iteration >= self.limit


@dataclass(frozen=True)
class MaxTime(Criterion):
    name, status = "maxtime", 3
    text = "The budget of maxtime = {limit:g} seconds is spent."

    def met(self, state: State, history: History) -> bool:
        return state.seconds >= self.limit


STAGNATION = 100  # iterations: the least window of stagnation="auto"


@dataclass(frozen=True)
class Stagnation(Criterion):
    """Met if a descent has not improved over a window of `limit` iterations.

    Its best loss is older than half of the window, and the median of the mean loss in the second half is not below
    that in the first. A noisy run therefore continues while its population improves.

    A restart has nothing to gain either if it converges to a loss above the best of earlier descents, even if it should
    gain three times as much as is expected. What is expected is the minimum of a model that predicts the losses, or
    the limit of a geometric series through the mean loss of the last iterations.
    """

    popsize: int = setting(
        0,
        "Popsize that the limit is for; with another one, what exceeds 100 changes in inverse "
        "proportion. 0: the limit holds for all.",
    )
    name, status = "stagnation", 4
    text = "Neither the best nor the mean loss improves any more (stagnation = {limit:g} iterations)."

    def met(self, state: State, history: History) -> bool:
        if state.restarts and _above_best(state, history):
            return True
        window = int(self.limit)
        if self.popsize:
            window = STAGNATION + int((self.limit - STAGNATION) * self.popsize / state.popsize)
        if state.iteration - max(state.began, state.descent.improved) <= window / 2:
            return False
        if state.iteration - state.began <= window:
            return False
        older, newer = (half[~np.isnan(half)] for half in np.array_split(history.last("mean_loss", window), 2))
        return not (older.size and newer.size and np.median(newer) < np.median(older))


# A descent may gain this many times what is expected of it.
CAUTION = 3.0


def _above_best(state: State, history: History) -> bool:
    """True if this descent converges to a loss clearly above the best of the run."""
    if not (state.feasible and state.descent.violation <= state.catol):
        return False
    margin = 1e-9 * abs(state.best_fun)
    if state.descent.best <= state.best_fun + margin:
        return False
    gain = _expected_gain(state, history)
    return state.descent.best - CAUTION * gain > state.best_fun + margin


def _expected_gain(state: State, history: History) -> float:
    """What the descent will still gain; infinite if that cannot be told."""
    if "model_minimum" in history and math.isfinite(lowest := history.latest("model_minimum")):
        return max(state.descent.best - lowest, 0.0)
    window = 10 + 10 * state.belief.dim // state.popsize
    if state.iteration - state.began < 4 * window:
        return math.inf
    levels = [float(np.median(part)) for part in np.split(history.last("mean_loss", 3 * window), 3)]
    before, latest = levels[0] - levels[1], levels[1] - levels[2]
    if not 0.0 <= latest < 0.5 * before < math.inf:
        return math.inf
    # latest (r + r^2 + ...) with r = latest / before, and what the population is above its best
    return latest * latest / (before - latest) + max(levels[2] - state.descent.best, 0.0)


def first_met(criteria: tuple[Criterion, ...], state: State, history: History) -> StopReason | None:
    for criterion in criteria:
        if criterion.met(state, history):
            return criterion.reason()
    return None


def share_spent(criteria: Iterable[Criterion], state: State) -> float:
    """The largest spent share of any budget."""
    spent = {MaxFev: state.evaluations, MaxIter: state.iteration, MaxTime: state.seconds}
    shares = [spent[kind] / criterion.limit for criterion in criteria if (kind := type(criterion)) in spent]
    return min(1.0, max(shares, default=0.0))
