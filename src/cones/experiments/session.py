"""A run under way: the loop that records, checkpoints and can be stopped and taken up again."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

from cones.errors import CheckpointError
from cones.evaluate import Objective, SerialEvaluator
from cones.experiments.records import Folder, Named
from cones.problems import Problem
from cones.progress.history import RADII
from cones.progress.stopping import StopReason
from cones.run import checkpoint as checkpoints
from cones.run.display import fraction_done
from cones.strategy import Strategy

__all__ = ["FunctionSession", "Pause", "Session", "Sessions", "execute", "read_checkpoint"]

KEEP_SECONDS = 10.0


class Session(ABC):
    """A strategy at work on something, and what is measured of each of its iterations.

    Attributes:
        strategy: asks and is told.
    """

    HISTORY: ClassVar[tuple[str, ...]]  # columns taken from the strategy
    MEASURED: ClassVar[tuple[str, ...]]
    KEEPS_CHECKPOINT: ClassVar[bool] = False  # when it is finished, too

    def __init__(self, strategy: Strategy, kept: Mapping[str, Any] | None = None) -> None:
        """`kept` is what `state()` gave when a checkpoint was written."""
        self.strategy = strategy
        self._rows: list[dict[str, float]] = [] if kept is None else [dict(row) for row in kept["rows"]]

    @abstractmethod
    def iterate(self) -> None:
        """One iteration. If it is interrupted, it is as if it had not begun."""

    def stop(self) -> StopReason | None:
        return self.strategy.stop()

    def share(self) -> float:
        """How much of the budget is spent, from 0 to 1."""
        return fraction_done(self.strategy)

    @abstractmethod
    def headline(self) -> str:
        """Where it stands, in a word and a number."""

    def state(self) -> dict[str, Any]:
        """What a checkpoint must hold besides the strategy, as JSON."""
        return {"rows": self._rows[: self.strategy.state.iteration]}

    def columns(self) -> dict[str, Any]:
        """All columns by name; NaN where something was not measured."""
        rows = self._rows[: self.strategy.state.iteration]
        measured = {name: [row.get(name, math.nan) for row in rows] for name in self.MEASURED}
        return {**{name: self.strategy.history[name] for name in self.HISTORY}, **measured}

    def _begin_row(self, **values: float) -> dict[str, float]:
        """The row of the iteration that is about to be told: if that is interrupted, the row does not count."""
        del self._rows[self.strategy.state.iteration :]
        self._rows.append(values)
        return values

    def write_results(self, folder: Folder, run: Named) -> None:  # noqa: B027 - most have none
        """Write what there is besides record and checkpoint."""

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Release what the session has started."""


class Pause:
    """When to leave a run for now: never, unless a subclass knows better."""

    def __call__(self, session: Session) -> bool:
        return False

    def share(self, session: Session) -> float:
        """How much is done of what is to be done now, from 0 to 1."""
        return session.share()


class Sessions(Named, Protocol):
    """A run that can be begun, and taken up from its checkpoint."""

    def session(self, kept: tuple[Strategy, dict[str, Any]] | None = None) -> Session: ...


def execute(
    run: Sessions,
    folder: Folder,
    report: Callable[[Session], None] = lambda session: None,
    stopped: Callable[[Session], bool] = lambda session: False,
) -> bool:
    """Execute a run from its checkpoint, or from its start, to its end or until it is `stopped`.

    Args:
        report: called after every iteration.

    Returns:
        Whether the run is finished. After KeyboardInterrupt, which goes on to the caller, everything up to
        the last complete iteration is kept.
    """
    session = run.session(read_checkpoint(folder.checkpoint_path(run)))
    try:
        kept = time.monotonic()
        while session.stop() is None and not stopped(session):
            session.iterate()
            report(session)
            if time.monotonic() - kept >= KEEP_SECONDS:
                _keep(run, folder, session)
                kept = time.monotonic()
    finally:
        try:
            _keep(run, folder, session)
        finally:
            session.close()
    report(session)
    return session.stop() is not None


def read_checkpoint(checkpoint: Path) -> tuple[Strategy, dict[str, Any]] | None:
    """What a run is taken up from, if there is something."""
    if not checkpoint.exists():
        return None
    try:
        strategy, extra = checkpoints.read(checkpoint)
        strategy.state = replace(strategy.state, fault="")  # what was wrong may be repaired
        return strategy, extra
    except CheckpointError as error:
        raise CheckpointError(f"{error}; delete the file to start this run anew") from None


def _keep(run: Named, folder: Folder, session: Session) -> None:
    reason = session.stop()
    if reason is None or session.KEEPS_CHECKPOINT:
        checkpoints.save(folder.checkpoint_path(run), session.strategy, session.state())
    session.write_results(folder, run)
    folder.write(run, reason is not None, "" if reason is None else reason.name, session.columns())
    if reason is not None and not session.KEEPS_CHECKPOINT:
        folder.checkpoint_path(run).unlink(missing_ok=True)


class FunctionSession(Session):
    """A strategy at work on a function."""

    HISTORY = (
        *("evaluations", "mean_loss", "best", "step", "spread", "kl", "multiplier", "gap", "failures"),
        *RADII,
    )
    MEASURED = ("loss_at_mean", "evaluation_seconds", "optimizer_seconds")

    def __init__(self, problem: Problem, strategy: Strategy, kept: Mapping[str, Any] | None = None) -> None:
        super().__init__(strategy, kept)
        self._problem = problem

    def iterate(self) -> None:
        strategy, problem = self.strategy, self._problem
        begin = time.perf_counter()
        X = strategy.ask()
        asked = time.perf_counter()
        losses = SerialEvaluator(Objective(problem, vectorized=True)).losses(X)
        evaluated = time.perf_counter()
        row = self._begin_row(evaluation_seconds=evaluated - asked)
        strategy.tell(X, losses)
        row["optimizer_seconds"] = time.perf_counter() - evaluated + asked - begin
        row["loss_at_mean"] = float(problem(strategy.state.belief.mean))

    def headline(self) -> str:
        if not self.strategy.state.iteration:
            return "starting"
        return f"mean loss {self.strategy.history.last('mean_loss', 1)[0]:.6g}"
