r"""Noisy losses: the lowest of many noisy values is biased low, so the end of a run measures again.

With m values f_i of a candidate that had no part in choosing it, an unbiased estimate and its standard error are

    mean(f_i)        sqrt( sum (f_i - mean)^2 / (m - 1) / m )

`minimize` spends a share of the budget on both answers of a run, the mean of the belief and the best candidate. If
nothing is known about the loss, one evaluation of the best candidate tells whether it is noisy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from cones.component import Storable
from cones.evaluate import Evaluator
from cones.progress.stopping import Criterion, MaxFev, StopReason
from cones.run.iterate import Observer
from cones.space.lagrangian import split
from cones.strategy import Strategy
from cones.types import Vector

__all__ = ["Estimate", "FinalEvaluations", "with_reserve"]

# A loss that is known to be noisy is measured at the end this often, or by this share of the evaluations.
LEAST_EVALUATIONS, SHARE = 10, 0.01
# Shorter runs are not checked for noise: there an evaluation is a large part of the budget.
LEAST_ITERATIONS = 10
# Smaller differences may come from rounding: of float32, or of sums in another order at the scale of the first losses.
RELATIVE, OF_FIRST = 1e-6, 1e-12
LARGEST_BATCH = 2**28  # bytes


@dataclass(frozen=True)
class Estimate(Storable):
    """What is known about the noise of the loss at the end of a run.

    Attributes:
        iteration: the iteration after which it was measured.
        noisy: True, False, or None if unknown.
        mean_fun, mean_fun_error: the loss at the mean and its standard error; NaN if not measured.
        x_fun, x_fun_error: the same at x, from values that had no part in choosing it.
        count: number of evaluations at the mean.
    """

    iteration: int = -1
    noisy: bool | None = None
    mean_fun: float = math.nan
    mean_fun_error: float = math.nan
    x_fun: float = math.nan
    x_fun_error: float = math.nan
    count: int = 0

    @property
    def use(self) -> str:
        """Which answer to use, "mean" or "best". On noisy losses the mean, unless x is clearly better."""
        if not self.noisy:
            return "best"
        error = math.hypot(*(0.0 if math.isnan(e) else e for e in (self.mean_fun_error, self.x_fun_error)))
        return "best" if self.x_fun + 2.0 * error < self.mean_fun else "mean"

    def sentence(self) -> str:
        """What the result's message says about noise; empty if the loss is not noisy."""
        if not self.noisy:
            return ""
        text = " The loss is noisy, and fun, the lowest value seen, is biased low."
        if self.count:
            text += f" At the mean the loss is {_number(self.mean_fun, self.mean_fun_error)}"
            text += f", at x {_number(self.x_fun, self.x_fun_error)}" if not math.isnan(self.x_fun) else ""
            text += f" ({self.count} evaluations at the mean)."
        return text + f" Use {'result.mean' if self.use == 'mean' else 'result.x'}."


class FinalEvaluations(Observer):
    """Measures the noise of the loss when the run has ended by itself.

    Args:
        noisy: True: the loss is noisy. False: it is not, and nothing is evaluated. None: find out.
        known: an estimate from a checkpoint; it holds while there is no further iteration.
        evaluated: called with a place after each evaluation.
    """

    def __init__(
        self,
        strategy: Strategy,
        evaluator: Evaluator,
        noisy: bool | None,
        known: Estimate,
        evaluated: Callable[[str], None],
    ) -> None:
        self._strategy, self._evaluator, self._noisy, self._evaluated = strategy, evaluator, noisy, evaluated
        self.estimate = known if known.iteration == strategy.state.iteration else Estimate(noisy=noisy)

    def told(self, seconds: float) -> None:
        if self.estimate.iteration >= 0:
            self.estimate = Estimate(noisy=self._noisy)

    def finished(self, reason: StopReason) -> None:
        state, strategy = self._strategy.state, self._strategy
        known, asked_to_stop = self.estimate.iteration == state.iteration, reason.name == "callback"
        if known or asked_to_stop or self._noisy is False or not math.isfinite(state.best_fun):
            return
        (x, mean), left = strategy.answers(), self._left()
        again: list[float] = []
        if self._noisy is None:
            if reason.name == "ftarget" or state.iteration < LEAST_ITERATIONS or left < 1:
                return
            again = self._losses(x[None, :])
            noisy = self._differs(again[0]) if not math.isnan(again[0]) else None
            self.estimate = Estimate(state.iteration, noisy)
            if not noisy:
                return
            left -= 1
        kept = max((c.reserve for c in strategy.criteria if isinstance(c, MaxFev)), default=0)
        count = int(min(max(LEAST_EVALUATIONS, SHARE * state.evaluations, kept), left))
        at_x = count // 2
        values = self._losses(np.broadcast_to(mean, (count - at_x, mean.size)))
        again += self._losses(np.broadcast_to(x, (at_x, x.size)))
        self.estimate = Estimate(state.iteration, True, *_average(values), *_average(again), count - at_x)

    def _left(self) -> float:
        limits = [criterion.limit for criterion in self._strategy.criteria if type(criterion) is MaxFev]
        return min(limits, default=math.inf) - self._strategy.state.evaluations

    def _losses(self, rows: Vector) -> list[float]:
        """The losses of rows, in batches that fit into memory. They count as evaluations of the run."""
        losses: list[float] = []
        size = max(1, LARGEST_BATCH // max(1, rows.itemsize * rows.shape[1]))
        for first in range(0, len(rows), size):
            part = rows[first : first + size]
            losses += [float(loss) for loss in split(self._evaluator.losses(part))[0]]
            self._evaluated("the final evaluations")
            state = self._strategy.state
            self._strategy.state = replace(state, evaluations=state.evaluations + len(part))
        return losses

    def _differs(self, again: float) -> bool:
        best, first = self._strategy.state.best_fun, self._strategy.history["mean_loss"][0]
        return bool(abs(again - best) > RELATIVE * abs(best) + OF_FIRST * abs(np.nan_to_num(first)))


def with_reserve(criteria: tuple[Criterion, ...], noisy: bool | None, popsize: int) -> tuple[Criterion, ...]:
    """The criteria with evaluations kept free for the end of the run."""

    def reserve(limit: float) -> int:
        if noisy is False or (noisy is None and limit < LEAST_ITERATIONS * popsize):
            return 0
        wanted = 1 if noisy is None else max(LEAST_EVALUATIONS, int(SHARE * limit))
        return max(0, min(wanted, int(limit) - popsize - 1))

    return tuple(
        replace(criterion, reserve=reserve(criterion.limit)) if isinstance(criterion, MaxFev) else criterion
        for criterion in criteria
    )


def _average(values: list[float]) -> tuple[float, float]:
    """The mean of the values and its standard error, without NaN."""
    known = np.array([value for value in values if not math.isnan(value)])
    if not known.size:
        return math.nan, math.nan
    with np.errstate(invalid="ignore", over="ignore"):
        error = float(known.std(ddof=1)) / math.sqrt(known.size) if known.size > 1 else math.nan
        return float(known.mean()), error


def _number(value: float, error: float) -> str:
    return f"{value:.6g}" if math.isnan(error) else f"{value:.6g} ± {error:.2g}"
