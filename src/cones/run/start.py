"""The start counts: `minimize` evaluates x0 before the first iteration."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cones.evaluate import Evaluator
from cones.progress.stopping import MaxFev
from cones.run.iterate import Observer
from cones.space.lagrangian import split
from cones.strategy import Strategy

__all__ = ["StartEvaluation"]


class StartEvaluation(Observer):
    """Evaluates the mean of the initial belief, unless the budget has no room for it or the run has begun before."""

    def __init__(self, strategy: Strategy, evaluator: Evaluator, evaluated: Callable[[str], None]) -> None:
        self._strategy, self._evaluator, self._evaluated = strategy, evaluator, evaluated

    def begun(self) -> None:
        strategy = self._strategy
        limits = [criterion.limit - criterion.reserve for criterion in strategy.criteria if type(criterion) is MaxFev]
        best, start = strategy.state.best_x, strategy.start_point()
        if best is not None and np.array_equal(best, start):  # known before the run
            return
        if strategy.state.evaluations or any(strategy.popsize + 1 > limit for limit in limits):
            return
        try:
            losses, constraints = split(self._evaluator.losses(start[None, :]))
        except Exception as error:
            error.add_note("cones: candidate 0 is the start, x0")
            raise
        self._evaluated("the start")
        strategy.tell_start(losses[0], None if constraints is None else constraints[0])
