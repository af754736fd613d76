"""What `minimize` adds to the loop: progress, callbacks, checkpoints, and a result even after an interrupt."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from os import PathLike, fspath
from typing import Any

from cones.errors import CheckpointError, InputError, NotStorableError
from cones.evaluate import Evaluator
from cones.evaluate.race import RacingEvaluator
from cones.evaluate.replicate import ReplicatingEvaluator, Replication
from cones.incremental import IncrementalStrategy
from cones.progress.stopping import CALLBACK, INTERRUPTED, RUNNING, StopReason
from cones.result import Result
from cones.run import checkpoint as checkpoints
from cones.run.display import ProgressLine
from cones.run.iterate import Observer, iterate
from cones.run.journal import Journal
from cones.run.noise import Estimate, FinalEvaluations
from cones.run.notebook import NotebookProgress, in_notebook
from cones.run.racing import RaceReport
from cones.run.refine import Refinement, refines
from cones.run.replicating import Replicates
from cones.run.start import StartEvaluation
from cones.space.lagrangian import split
from cones.storage import check_storable
from cones.strategy import Strategy
from cones.types import Vector

__all__ = ["journal_of", "run_to_end"]

# Without `checkpoint_every`, a checkpoint is written once the last one is this many seconds old.
CHECKPOINT_SECONDS = 30.0


def run_to_end(
    strategy: Strategy,
    evaluator: Evaluator,
    vectorized: bool,
    callback: Callable[..., Any] | None,
    disp: bool,
    checkpoint: str | PathLike[str] | None,
    checkpoint_every: int | None,
    noisy: bool | None = None,
    estimate: Estimate | None = None,
    function: str = "",
    asynchronous: bool = False,
    events: int | None = None,
    replication: Replication | None = None,
    curvatures: Vector | None = None,
) -> Result:
    """Run the loop to its end. The result, or the exception, includes all evaluations.

    `estimate` is that of the checkpoint from which the run continues, `function` the name for it, `events` the length
    of its journal, `replication` what it knew about replicates. `curvatures` are those of a warm start.
    """
    outcome = _Outcome(strategy, evaluator, noisy, estimate or Estimate())
    race = RaceReport(strategy, evaluator) if isinstance(evaluator, RacingEvaluator) else None
    replicates = None
    if isinstance(evaluator, ReplicatingEvaluator):
        replicates = Replicates(strategy, evaluator, replication or Replication())
    reports: list[RaceReport | Replicates] = [report for report in (race, replicates) if report is not None]
    display = _Display(strategy) if disp else None
    observers: list[Observer] = [StartEvaluation(strategy, evaluator, outcome.failed_in), outcome, outcome.final]
    if curvatures is not None and refines(strategy):
        observers.insert(1, Refinement(strategy, evaluator, curvatures, outcome.failed_in))
    observers += reports
    try:
        if callback is not None and not callable(callback):
            raise InputError(f"callback: expected a callable, got {type(callback).__name__}")
        if checkpoint is not None:
            run = {"vectorized": vectorized, "checkpoint_every": checkpoint_every, "noisy": noisy, "function": function}
            run["early_end"] = race is not None
            run["asynchronous"] = asynchronous
            journal = _journal(strategy, checkpoint, events) if asynchronous else None
            observers.append(_Saver(strategy, fspath(checkpoint), run, outcome.final, journal, replicates))
        if display:
            observers.append(display)
        if callback is not None:
            observers.append(_Callback(strategy, callback))
    except BaseException:
        evaluator.abort()
        raise
    try:
        reason = iterate(strategy, evaluator, observers, asynchronous)
    except KeyboardInterrupt:
        reason = INTERRUPTED
    except (Exception, SystemExit) as error:
        state = strategy.state
        error.add_note(f"cones: in iteration {state.iteration}, after {state.evaluations} evaluations")
        with suppress(AttributeError):  # some exceptions accept no attributes
            error.cones_result = _completed(outcome.result(RUNNING), reports)  # type: ignore[union-attr]
        raise
    result = _completed(outcome.result(reason), reports)
    if display:
        display.finish(result.message + outcome.summary())
    return result


def _completed(result: Result, reports: Iterable[RaceReport | Replicates]) -> Result:
    for report in reports:
        report.complete(result)
    return result


def _journal(strategy: Strategy, checkpoint: str | PathLike[str], events: int | None) -> Journal:
    """The journal beside a checkpoint. Candidates that were out when the run ended are asked for again."""
    journal = Journal(journal_of(checkpoint), events)
    if isinstance(strategy, IncrementalStrategy):
        strategy.journal = journal
        strategy.ask_again()
    return journal


def journal_of(checkpoint: str | PathLike[str]) -> str:
    """The path of the journal that belongs to a checkpoint."""
    return f"{fspath(checkpoint)}.journal"


class _Outcome(Observer):
    """The result, including the known losses of an interrupted population."""

    def __init__(self, strategy: Strategy, evaluator: Evaluator, noisy: bool | None, estimate: Estimate) -> None:
        self._strategy, self._evaluator = strategy, evaluator
        self.final = FinalEvaluations(strategy, evaluator, noisy, estimate, self.failed_in)
        self._failures: list[str] = []
        self._asked = -1  # the last iteration whose evaluation began

    def asked(self) -> None:
        self._asked = self._strategy.state.iteration

    def evaluated(self, losses: Vector, seconds: float) -> None:
        self.failed_in(f"iteration {self._strategy.state.iteration}")

    def failed_in(self, place: str) -> None:
        """Note why candidates of the last evaluation have no loss."""
        failures = sorted(self._evaluator.failures.items())
        self._failures += [f"{place}, candidate {k}: {why}" for k, why in failures]

    def summary(self) -> str:
        """The failures in one sentence; empty if there are none."""
        count = len(self._failures)
        return f" {count} evaluations failed, the last in {self._failures[-1]}." if count else ""

    def result(self, reason: StopReason) -> Result:
        strategy, partial = self._strategy, self._evaluator.partial
        result, estimate = strategy.result_with(reason), self.final.estimate
        result.failures = self._failures
        result.noisy, result.use = estimate.noisy, estimate.use
        result.mean_fun, result.mean_fun_error = estimate.mean_fun, estimate.mean_fun_error
        result.x_fun, result.x_fun_error = estimate.x_fun, estimate.x_fun_error
        result.message += estimate.sentence()
        cut_short = self._asked == strategy.state.iteration  # its losses were not told
        if cut_short and partial is not None:
            strategy.add_partial(result, *split(partial))
        return result


class _Saver(Observer):
    """Writes checkpoints. A failure to write the first is an error, a later one a warning."""

    def __init__(
        self,
        strategy: Strategy,
        path: str,
        run: dict[str, Any],
        final: FinalEvaluations,
        journal: Journal | None,
        replicates: Replicates | None,
    ) -> None:
        self._strategy, self._path, self._run, self._final, self._journal = strategy, path, run, final, journal
        self._replicates = replicates
        self._every: int | None = run["checkpoint_every"]
        self._write()

    def _write(self) -> None:
        events = None if self._journal is None else self._journal.count
        run = {**self._run, "estimate": self._final.estimate, "events": events}
        run["replication"] = None if self._replicates is None else self._replicates.state
        checkpoints.save(self._path, self._strategy, run)
        self._state, self._time = self._strategy.state, time.monotonic()

    def begun(self) -> None:
        self.ended()  # with the loss of the start

    def told(self, seconds: float) -> None:
        if self._every is None:
            due = time.monotonic() - self._time >= CHECKPOINT_SECONDS
        else:
            due = self._strategy.state.iteration % self._every == 0
        if self._strategy.state.iteration == 1:
            check_storable(self._strategy)  # now that all components have a state, and not at the end of the run
        if due:
            self.ended()

    def ended(self) -> None:
        if self._state is self._strategy.state:
            return
        try:
            self._write()
        except NotStorableError:
            self._state = self._strategy.state
            raise
        except CheckpointError as error:
            warnings.warn(f"{error}; the previous checkpoint is kept", RuntimeWarning, stacklevel=2)


class _Display(Observer):
    """Progress on standard error, or in a notebook."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy, self._line = strategy, NotebookProgress() if in_notebook() else ProgressLine()

    def told(self, seconds: float) -> None:
        self._line.update(self._strategy)

    def ended(self) -> None:
        self._line.close()

    def finish(self, message: str) -> None:
        self._line.finish(self._strategy, message)


class _Callback(Observer):
    """Calls a callback in either of SciPy's two forms. If it raises StopIteration, the run ends."""

    def __init__(self, strategy: Strategy, callback: Callable[..., Any]) -> None:
        self._strategy, self._callback, self._stopped = strategy, callback, False
        try:
            self._keyword = set(inspect.signature(callback).parameters) == {"intermediate_result"}
        except (TypeError, ValueError):
            self._keyword = False

    def told(self, seconds: float) -> None:
        result = self._strategy.intermediate_result()
        try:
            if self._keyword:
                self._callback(intermediate_result=result)
            else:
                self._callback(result.x)
        except StopIteration:
            self._stopped = True

    def stop(self) -> StopReason | None:
        return CALLBACK if self._stopped else None
