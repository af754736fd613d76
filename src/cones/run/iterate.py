"""The loop around ask and tell. Observers do everything else in a run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack

from cones.evaluate import Evaluator
from cones.progress.stopping import StopReason
from cones.run.log import RunLog
from cones.space.lagrangian import split
from cones.strategy import Strategy
from cones.types import Vector

__all__ = ["Observer", "iterate"]


class Observer:
    """Follows a run. Override the methods you need.

    The loop calls them in the order below: `stop` before every iteration, `asked`, `evaluated` and `told` in it,
    `finished` if there is a reason to stop, and `ended` once, even after an exception. An interrupt may come between
    any two calls. An iteration counts if `strategy.tell` finished, which increments `strategy.state.iteration`.
    """

    def begun(self) -> None:
        """The run starts, or continues from a checkpoint. The evaluator is open."""

    def stop(self) -> StopReason | None:
        """A reason to stop, in addition to the strategy's own criteria; None to continue."""
        return None

    def asked(self) -> None:
        """The candidates were drawn."""

    def evaluated(self, losses: Vector, seconds: float) -> None:
        """The candidates were evaluated, which took `seconds`."""

    def told(self, seconds: float) -> None:
        """The strategy was updated; its ask and tell took `seconds`."""

    def finished(self, reason: StopReason) -> None:
        """The run has stopped for a reason. The evaluator is still open."""

    def ended(self) -> None:
        """The evaluator is closed. An exception that ended the run propagates after this call."""


def iterate(strategy: Strategy, evaluator: Evaluator, observers: Sequence[Observer]) -> StopReason:
    """Ask, evaluate and tell until an observer or the strategy has a reason to stop."""
    with ExitStack() as stack:
        for observer in observers:
            stack.callback(observer.ended)
        stack.enter_context(evaluator)
        log = stack.enter_context(RunLog(strategy, evaluator))
        for observer in observers:
            observer.begun()
        while (reason := _reason(strategy, observers)) is None:
            begin = time.perf_counter()
            candidates = strategy.candidates()
            for observer in observers:
                observer.asked()
            asked = time.perf_counter()
            losses, constraints = split(evaluator.losses(candidates))
            evaluated = time.perf_counter()
            log.evaluated()
            for observer in observers:
                observer.evaluated(losses, evaluated - asked)
            strategy.tell(candidates, losses, constraints)
            seconds = asked - begin + time.perf_counter() - evaluated
            for observer in observers:
                observer.told(seconds)
            log.told()
        log.finished(reason)
        for observer in observers:
            observer.finished(reason)
    return reason


def _reason(strategy: Strategy, observers: Sequence[Observer]) -> StopReason | None:
    for observer in observers:
        if (reason := observer.stop()) is not None:
            return reason
    return strategy.stop()
