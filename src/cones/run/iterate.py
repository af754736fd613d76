"""The loop around ask and tell. All else that happens in a run is done by observers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack

from cones.evaluate import Evaluator
from cones.progress.stopping import StopReason
from cones.strategy import Strategy
from cones.types import Vector

__all__ = ["Observer", "iterate"]


class Observer:
    """Follows a run. Override the methods you need.

    They are called in the order in which they stand here; `asked`, `evaluated` and `told` in every iteration, `stop`
    before it, and `ended` once, whatever ended the run. An interrupt may come between any two of them: an iteration
    counts if the strategy was told, which `strategy.state.iteration` says.
    """

    def begun(self) -> None:
        """The run begins, or goes on from a checkpoint."""

    def stop(self) -> StopReason | None:
        """A reason to stop, besides the strategy's own."""
        return None

    def asked(self) -> None:
        """The candidates are drawn."""

    def evaluated(self, losses: Vector, seconds: float) -> None:
        """The losses are known; evaluation took `seconds`."""

    def told(self, seconds: float) -> None:
        """The strategy has moved; its ask and tell took `seconds`."""

    def ended(self) -> None:
        """The evaluator is closed; if an exception ended the run, it goes on after this."""


def iterate(strategy: Strategy, evaluator: Evaluator, observers: Sequence[Observer]) -> StopReason:
    """Ask, evaluate and tell until an observer or the strategy has a reason to stop."""
    with ExitStack() as stack:
        for observer in observers:
            stack.callback(observer.ended)
        stack.enter_context(evaluator)
        for observer in observers:
            observer.begun()
        while (reason := _reason(strategy, observers)) is None:
            begin = time.perf_counter()
            candidates = strategy.ask()
            for observer in observers:
                observer.asked()
            asked = time.perf_counter()
            losses = evaluator.losses(candidates)
            evaluated = time.perf_counter()
            for observer in observers:
                observer.evaluated(losses, evaluated - asked)
            strategy.tell(candidates, losses)
            seconds = asked - begin + time.perf_counter() - evaluated
            for observer in observers:
                observer.told(seconds)
    return reason


def _reason(strategy: Strategy, observers: Sequence[Observer]) -> StopReason | None:
    for observer in observers:
        if (reason := observer.stop()) is not None:
            return reason
    return strategy.stop()
