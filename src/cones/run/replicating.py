"""Replicates in a run: how many, within the budget, and what the history says about them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import OptimizeResult

from cones.checks import check_one_of
from cones.errors import InputError
from cones.evaluate.replicate import ReplicatingEvaluator, Replication
from cones.run.iterate import Observer, evaluations_left
from cones.strategy import Strategy
from cones.types import Vector

__all__ = ["Replicates", "check_replicates"]

# A population takes this share of the budget at most, or two evaluations per candidate.
SHARE_OF_BUDGET = 0.02


def check_replicates(
    replicates: str | None, noisy: bool | None, early_end: bool, asynchronous: bool, constrained: bool
) -> None:
    """Refuse another value than "auto", and what cannot be together with replicates."""
    if replicates is None:
        return
    check_one_of("replicates", replicates, ("auto",))
    others = {
        "noisy=False": noisy is False,
        "early_end": early_end,
        "asynchronous": asynchronous,
        "constraints": constrained,
    }
    for name, given in others.items():
        if given:
            raise InputError(f"replicates: expected None with {name}, got {replicates!r}")


class Replicates(Observer):
    """Chooses the number of replicates, counts them, and writes the columns `replicates` and `reliability`.

    Attributes:
        state: what the next population needs; for checkpoints.
    """

    def __init__(self, strategy: Strategy, evaluator: ReplicatingEvaluator, state: Replication) -> None:
        self._strategy, self._evaluator, self.state = strategy, evaluator, state
        self._counted = True

    def asked(self) -> None:
        if self.state.restarts != (restarts := self._strategy.state.restarts):
            self.state = Replication(restarts=restarts)
        left, popsize = evaluations_left(self._strategy), self._strategy.popsize
        share = SHARE_OF_BUDGET * (self._strategy.state.evaluations + left)
        self._evaluator.prepare(*self.state.counts(popsize, min(left, max(2 * popsize, share))))
        self._counted = False

    def evaluated(self, losses: Vector, seconds: float) -> None:
        """Count what exceeds one evaluation per candidate, which `tell` counts."""
        state = self._strategy.state
        self._strategy.state = replace(state, evaluations=state.evaluations + self._evaluator.spent - losses.size)
        self._counted = True

    def told(self, seconds: float) -> None:
        history, evaluator = self._strategy.history, self._evaluator
        number = evaluator.spent / history.latest("popsize")
        history.amend({"replicates": number, "reliability": evaluator.reliability})
        self.state = self.state.after(evaluator.reliability, number)
        evaluator.prepare(1, 0)

    def complete(self, result: OptimizeResult) -> None:
        """Add replicates to the message, and those of an interrupted population to the evaluations."""
        partial = self._evaluator.partial
        if not self._counted and partial is not None:
            result.nfev += self._evaluator.spent - int(np.count_nonzero(~np.isnan(partial)))
        if "replicates" in self._strategy.history:
            numbers, sizes = (self._strategy.history[name] for name in ("replicates", "popsize"))
            known = ~np.isnan(numbers)
            if known.any():
                mean = float(np.average(numbers[known], weights=sizes[known]))
                result.message += f" Candidates were evaluated {mean:.3g} times on average."
