"""One run of an experiment: the loop that records, checkpoints and can be stopped and taken up again."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from cones import checkpoint as checkpoints
from cones.errors import CheckpointError
from cones.experiments.records import Folder
from cones.experiments.spec import Run
from cones.strategy import Strategy

__all__ = ["COLUMNS", "execute"]

# From the strategy's history, and what only the loop around it knows.
HISTORY = ("evaluations", "mean_loss", "best", "step", "spread", "kl", "multiplier", "gap", "failures")
MEASURED = ("loss_at_mean", "evaluation_seconds", "optimizer_seconds")
COLUMNS = (*HISTORY, *MEASURED)

KEEP_SECONDS = 10.0
REPORT_SECONDS = 0.5


def execute(
    run: Run,
    folder: Folder,
    report: Callable[[float, float], None] = lambda share, loss: None,
    stopped: Callable[[], bool] = lambda: False,
) -> bool:
    """Execute a run from its checkpoint, or from its start, to its end or until `stopped()`.

    Args:
        report: called now and then with the share of the budget that is spent and the mean loss.

    Returns:
        Whether the run is finished.
    """
    problem = run.problem.make()
    strategy, measured = _restored(run, folder.checkpoint_path(run))
    kept = reported = time.monotonic()
    while strategy.stop() is None and not stopped():
        begin = time.perf_counter()
        X = strategy.ask()
        asked = time.perf_counter()
        losses = problem(X)
        evaluated = time.perf_counter()
        strategy.tell(X, losses)
        told = time.perf_counter()
        measured["loss_at_mean"].append(float(problem(strategy.state.belief.mean)))
        measured["evaluation_seconds"].append(evaluated - asked)
        measured["optimizer_seconds"].append(asked - begin + told - evaluated)
        now = time.monotonic()
        if now - reported >= REPORT_SECONDS:
            reported = now
            report(strategy.state.evaluations / run.method.maxfev, float(strategy.history.last("mean_loss", 1)[0]))
        if now - kept >= KEEP_SECONDS:
            kept = now
            _keep(run, folder, strategy, measured, finished=False)
    finished = strategy.stop() is not None
    _keep(run, folder, strategy, measured, finished)
    if strategy.state.iteration:
        report(strategy.state.evaluations / run.method.maxfev, float(strategy.history.last("mean_loss", 1)[0]))
    return finished


def _restored(run: Run, checkpoint: Path) -> tuple[Strategy, dict[str, list[float]]]:
    if checkpoint.exists():
        try:
            strategy, extra = checkpoints.read(checkpoint)
        except CheckpointError as error:
            raise CheckpointError(f"{error}; delete the file to start this run anew") from None
        return strategy, {name: list(extra[name]) for name in MEASURED}
    return run.start(), {name: [] for name in MEASURED}


def _keep(run: Run, folder: Folder, strategy: Strategy, measured: dict[str, list[float]], finished: bool) -> None:
    columns: dict[str, object] = {name: strategy.history[name] for name in HISTORY}
    reason = strategy.stop()
    folder.write(run, finished, "" if reason is None else reason.name, {**columns, **measured})
    if finished:
        folder.checkpoint_path(run).unlink(missing_ok=True)
    else:
        checkpoints.save(
            folder.checkpoint_path(run),
            strategy,
            {name: np.asarray(values).tolist() for name, values in measured.items()},
        )
