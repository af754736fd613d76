"""The loop around ask and tell. Observers do everything else in a run."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np

from cones.beliefs import Gaussian
from cones.errors import InputError
from cones.evaluate import Evaluator
from cones.incremental import IncrementalStrategy
from cones.progress.stopping import MaxFev, StopReason
from cones.run.log import RunLog
from cones.space.lagrangian import split
from cones.strategy import Strategy
from cones.types import Vector

# More candidates than this many populations should not be out at a time.
MOST_OUT = 8

__all__ = ["Observer", "check_asynchronous", "evaluations_left", "iterate"]


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


def iterate(
    strategy: Strategy, evaluator: Evaluator, observers: Sequence[Observer], asynchronous: bool = False
) -> StopReason:
    """Ask, evaluate and tell until an observer or the strategy has a reason to stop.

    With `asynchronous`, a worker that is free gets a candidate at once. Observers are then told after each iteration,
    and `evaluated` is called with the losses as they come.
    """
    with ExitStack() as stack:
        for observer in observers:
            stack.callback(observer.ended)
        stack.enter_context(evaluator)
        log = stack.enter_context(RunLog(strategy, evaluator))
        for observer in observers:
            observer.begun()
        if asynchronous:
            reason = _as_they_arrive(check_asynchronous(strategy), evaluator, observers, log)
        else:
            reason = _by_populations(strategy, evaluator, observers, log)
        log.finished(reason)
        for observer in observers:
            observer.finished(reason)
    return reason


def check_asynchronous(strategy: Strategy) -> IncrementalStrategy:
    """The strategy; an error if it takes whole populations only."""
    if not isinstance(strategy, IncrementalStrategy):
        raise InputError(f"asynchronous: expected False with {strategy.method}, which asks for whole populations")
    if strategy.space is not None:
        raise InputError("asynchronous: expected False in a space, which needs whole populations, got True")
    if not isinstance(belief := strategy.state.belief, Gaussian):
        raise InputError(f"asynchronous: expected False with a {type(belief).__name__} belief, got True")
    return strategy


def _by_populations(strategy: Strategy, evaluator: Evaluator, observers: Sequence[Observer], log: RunLog) -> StopReason:
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
    return reason


def _as_they_arrive(
    strategy: IncrementalStrategy, evaluator: Evaluator, observers: Sequence[Observer], log: RunLog
) -> StopReason:
    with evaluator.stream() as stream:
        if (workers := stream.free()) > MOST_OUT * strategy.popsize:
            warnings.warn(
                f"asynchronous: {workers} workers and popsize = {strategy.popsize}: most results are old when they "
                f"come, and the run may diverge; give popsize={-(-workers // MOST_OUT)} or more",
                RuntimeWarning,
                stacklevel=2,
            )
        out, reason, begin = 0, None, time.perf_counter()
        while True:
            reason = reason or _reason(strategy, observers)
            if reason is not None and (reason.name != "maxfev" or not out):
                return reason
            room = 0 if reason else int(min(stream.free(), evaluations_left(strategy) - out))
            if room > 0:
                for identity, candidate in zip(*strategy.ask_identified(room), strict=True):
                    stream.put(identity, candidate)
                out += room
            asked = time.perf_counter()
            identities, losses = zip(*stream.take(), strict=True)
            out -= len(losses)
            evaluator.failures = {k: stream.failures[i] for k, i in enumerate(identities) if i in stream.failures}
            evaluated, iteration = time.perf_counter(), strategy.state.iteration
            log.evaluated()
            for observer in observers:
                observer.evaluated(np.array(losses), evaluated - asked)
            strategy.tell_identified(identities, np.array(losses))
            if strategy.state.iteration > iteration:
                now = time.perf_counter()
                for observer in observers:
                    observer.told(asked - begin + now - evaluated)
                log.told()
                begin = now


def evaluations_left(strategy: Strategy) -> float:
    """Evaluations that are left of the budget, without those kept for the end. What is out belongs to it."""
    limits = [criterion.limit - criterion.reserve for criterion in strategy.criteria if isinstance(criterion, MaxFev)]
    return min(limits, default=math.inf) - strategy.state.evaluations


def _reason(strategy: Strategy, observers: Sequence[Observer]) -> StopReason | None:
    for observer in observers:
        if (reason := observer.stop()) is not None:
            return reason
    return strategy.stop()
