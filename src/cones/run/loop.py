"""The loop around ask and tell: evaluation, progress, callbacks, checkpoints, and how it ends."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from os import PathLike, fspath
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from cones.errors import CheckpointError, InputError
from cones.evaluate import Evaluator
from cones.progress.stopping import CALLBACK, INTERRUPTED, RUNNING, StopReason
from cones.run import checkpoint as checkpoints
from cones.run.display import ProgressLine
from cones.strategy import Strategy

__all__ = ["run_to_end"]

# Without `checkpoint_every`, a checkpoint is written when the last one is this many seconds old.
CHECKPOINT_SECONDS = 30.0


def run_to_end(
    strategy: Strategy,
    evaluator: Evaluator,
    vectorized: bool,
    callback: Callable[..., Any] | None,
    disp: bool,
    checkpoint: str | PathLike[str] | None,
    checkpoint_every: int | None,
) -> OptimizeResult:
    """Ask, evaluate and tell until a reason to stop; whatever ends it, nothing that was evaluated is lost."""
    try:
        if callback is not None and not callable(callback):
            raise InputError(f"callback: expected a callable, got {type(callback).__name__}")
        run = {"vectorized": vectorized, "checkpoint_every": checkpoint_every}
        saver = None if checkpoint is None else _Saver(strategy, fspath(checkpoint), run)
        report = None if callback is None else _reporter(callback)
        line = ProgressLine() if disp else None
        if saver:
            saver.write()  # before any work is done: a place that cannot be written to is an error now
    except BaseException:
        evaluator.abort()
        raise
    failures: list[str] = []
    reason: StopReason | None = None
    begun = -1  # the last iteration whose evaluation began
    try:
        with evaluator:
            while (reason := strategy.stop()) is None:
                candidates = strategy.ask()
                begun = strategy.state.iteration
                losses = evaluator.losses(candidates)
                failures += [
                    f"iteration {begun}, candidate {k}: {why}" for k, why in sorted(evaluator.failures.items())
                ]
                strategy.tell(candidates, losses)
                if saver:
                    saver.write_if_due()
                if line:
                    line.update(strategy)
                if report and not report(strategy):
                    reason = CALLBACK
                    break
    except KeyboardInterrupt:
        reason = INTERRUPTED
    except (Exception, SystemExit) as error:
        state = strategy.state
        error.add_note(f"cones: in iteration {state.iteration}, after {state.evaluations} evaluations")
        with suppress(AttributeError):  # some exceptions take no attributes
            error.cones_result = _result(strategy, evaluator, begun, failures, RUNNING)  # type: ignore[union-attr]
        raise
    finally:
        if line:
            line.close()
        if saver:
            saver.write_again()
    if line:
        told = f" {len(failures)} evaluations failed, the last in {failures[-1]}." if failures else ""
        line.finish(strategy, reason.message + told)
    return _result(strategy, evaluator, begun, failures, reason)


def _result(
    strategy: Strategy, evaluator: Evaluator, begun: int, failures: list[str], reason: StopReason
) -> OptimizeResult:
    """The result, with what is known of a population whose evaluation was cut short."""
    result, partial = strategy.result_with(reason), evaluator.partial
    result.failures = failures
    cut_short = begun == strategy.state.iteration  # its losses were not told
    if cut_short and partial is not None and not np.isnan(partial).all():
        best = int(np.nanargmin(partial))
        result.nfev += int((~np.isnan(partial)).sum())
        if not result.fun <= partial[best]:
            result.x, result.fun = strategy.ask()[best].copy(), float(partial[best])
    return result


def _reporter(callback: Callable[..., Any]) -> Callable[[Strategy], bool]:
    """The callback in SciPy's two forms; False when it asks to stop."""
    try:
        keyword = set(inspect.signature(callback).parameters) == {"intermediate_result"}
    except (TypeError, ValueError):
        keyword = False

    def report(strategy: Strategy) -> bool:
        result = strategy.intermediate_result()
        try:
            if keyword:
                callback(intermediate_result=result)
            else:
                callback(result.x)
        except StopIteration:
            return False
        return True

    return report


class _Saver:
    """Writes checkpoints when they are due. A failure after the first is a warning: the run goes on."""

    def __init__(self, strategy: Strategy, path: str, run: dict[str, Any]) -> None:
        self._strategy, self._path, self._run = strategy, path, run
        self._every: int | None = run["checkpoint_every"]
        self._iteration, self._time = -1, 0.0

    def write(self) -> None:
        checkpoints.save(self._path, self._strategy, self._run)
        self._iteration, self._time = self._strategy.state.iteration, time.monotonic()

    def write_if_due(self) -> None:
        if self._every is None:
            due = time.monotonic() - self._time >= CHECKPOINT_SECONDS
        else:
            due = self._strategy.state.iteration % self._every == 0
        if due:
            self.write_again()

    def write_again(self) -> None:
        if self._iteration in (-1, self._strategy.state.iteration):  # never begun, or up to date
            return
        try:
            self.write()
        except CheckpointError as error:
            warnings.warn(f"{error}; the previous checkpoint is kept", RuntimeWarning, stacklevel=2)
