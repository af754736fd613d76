"""Early ends in a run: who takes part, and what they saved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scipy.optimize import OptimizeResult

from cones.errors import InputError
from cones.estimators.quadratic import Quadratic
from cones.evaluate import Evaluator, Objective, Workers, evaluator_from
from cones.evaluate.race import RacedFunction, RacingEvaluator, ScoreBoard
from cones.progress import History
from cones.run.iterate import Observer
from cones.strategy import Strategy

__all__ = ["RaceReport", "racing_evaluator"]

BY_VALUE = ("raw", "standardised")  # shapings in which the size of a loss counts


def racing_evaluator(
    strategy: Strategy,
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    vectorized: bool,
    workers: Workers,
    timeout: float | None,
    retries: int | None,
) -> RacingEvaluator:
    """The evaluator of a run with early ends; what cannot have them is refused."""
    if vectorized:
        raise InputError("early_end: expected a function of one candidate, got vectorized=True")
    if strategy.state.lagrangian is not None:
        raise InputError("early_end: expected no constraints beside it")
    if isinstance(workers, Evaluator):
        raise InputError(f"early_end: expected workers that evaluate fun, got a {type(workers).__name__}")
    if isinstance(workers, str) and "://" in workers:
        raise InputError(f"early_end: expected workers on this machine, got {workers!r}")
    shaping = getattr(getattr(strategy, "algorithm", None), "shaping", None)
    if str(shaping) in BY_VALUE:
        raise InputError(f"early_end: expected a shaping by rank, got {str(shaping)!r}")
    estimator = getattr(getattr(strategy, "algorithm", None), "estimator", None)
    if isinstance(estimator, Quadratic):  # measured: three to four times the evaluations, if costs do not come evenly
        raise InputError(
            "early_end: expected an estimator by rank, got 'quadratic', the default up to 40 dimensions, which uses "
            "the values of losses; pass estimator='recombination'"
        )
    if not callable(fun):
        raise InputError(f"fun: expected a callable, got {type(fun).__name__}")
    board = ScoreBoard()
    try:
        raced = Objective(RacedFunction(fun, board), args, width=3)
        return RacingEvaluator(evaluator_from(raced, workers, timeout, retries), board)
    except BaseException:
        board.remove()
        raise


class RaceReport(Observer):
    """Lets populations race, and writes the columns `ended` and `saved`."""

    def __init__(self, strategy: Strategy, evaluator: RacingEvaluator) -> None:
        self._strategy, self._evaluator = strategy, evaluator

    def asked(self) -> None:
        self._evaluator.races = True

    def told(self, seconds: float) -> None:
        self._evaluator.races = False
        self._strategy.history.amend({"ended": self._evaluator.ended, "saved": self._evaluator.saved})

    def complete(self, result: OptimizeResult) -> None:
        """Add the totals to the result."""
        result.ended, result.saved = totals(self._strategy.history)
        if result.ended:
            result.message += (
                f" {result.ended} evaluations were ended early, which saved {result.saved:.0%} of the work."
            )


def totals(history: History) -> tuple[int, float]:
    """How many evaluations were ended early, and the share of all work that this saved."""
    if "ended" not in history or not len(history):
        return 0, 0.0
    popsize, ended, saved = history["popsize"], history["ended"], history["saved"]
    known = ended == ended  # NaN where a run had no early ends
    return int(ended[known].sum()), float((saved * popsize)[known].sum() / popsize.sum())
