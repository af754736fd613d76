"""Runs that are recorded: an observer that measures, files that are kept, and a start from where a run was left."""

from __future__ import annotations

import math
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from cones.errors import CheckpointError, NotStorableError
from cones.evaluate import Evaluator
from cones.progress.stopping import StopReason
from cones.records.folder import Folder, Named
from cones.run import checkpoint as checkpoints
from cones.run.display import fraction_done
from cones.run.iterate import Observer, iterate
from cones.strategy import Strategy
from cones.types import Vector

__all__ = ["Kept", "Pause", "Session", "UnwrittenError", "execute", "read_checkpoint"]

KEEP_SECONDS = 10.0
PAUSED = StopReason("paused", "The run is paused; the same command continues it.", -1)

Kept = tuple[Strategy, dict[str, Any]]  # what a checkpoint holds: the strategy, and the session's `state()`


class UnwrittenError(CheckpointError):
    """The end of a run could not be written; its files are those of an earlier iteration."""


class Session(Observer, ABC):
    """A run under way, and what is measured in each of its iterations.

    Attributes:
        strategy: the strategy that is run.
        evaluator: its losses.
        report: called with the session after every iteration, and once more at the end.
        asynchronous: True if a worker that is free gets a new candidate at once.
    """

    NOT_RECORDED: ClassVar[tuple[str, ...]]  # columns of the history that the record leaves out
    MEASURED: ClassVar[tuple[str, ...]]
    KEEPS_CHECKPOINT: ClassVar[bool] = False  # of a finished run, too
    asynchronous: bool = False

    def __init__(self, strategy: Strategy, evaluator: Evaluator, kept: Mapping[str, Any] | None = None) -> None:
        self.strategy, self.evaluator = strategy, evaluator
        self.report: Callable[[Any], None] = lambda session: None
        self._rows: list[dict[str, float]] = [] if kept is None else _rows(kept.get("rows"), strategy.state.iteration)

    @property
    def iteration(self) -> int:
        return self.strategy.state.iteration

    def reason(self) -> StopReason | None:
        """Why the run is finished, or None."""
        return self.strategy.stop()

    def stop(self) -> StopReason | None:
        return self.reason()

    def share(self) -> float:
        """The part of the budget that is spent, from 0 to 1."""
        return fraction_done(self.strategy)

    @abstractmethod
    def headline(self) -> str:
        """The progress in a few words."""

    def evaluated(self, losses: Vector, seconds: float) -> None:
        # The row counts once the strategy is told: `_rows` is always read up to the strategy's iteration.
        self._rows[self.iteration :] = [{"evaluation_seconds": seconds}]

    def told(self, seconds: float) -> None:
        self._rows[self.iteration - 1]["optimizer_seconds"] = seconds

    def state(self) -> dict[str, Any]:
        """What a checkpoint must hold besides the strategy, as JSON."""
        return {"rows": self._rows[: self.iteration]}

    def columns(self) -> dict[str, Any]:
        """All columns by name; NaN where something was not measured."""
        rows = self._rows[: self.iteration]
        history = self.strategy.history.columns()
        return {
            **{name: column for name, column in history.items() if name not in self.NOT_RECORDED},
            **{name: [row.get(name, math.nan) for row in rows] for name in self.MEASURED},
        }

    def write_results(self, folder: Folder, run: Named) -> None:
        """Write what there is besides record and checkpoint."""


SomeSession = TypeVar("SomeSession", bound=Session)
SomeRun = TypeVar("SomeRun", bound=Named)


class Pause:
    """When to pause a run: never, unless a subclass overrides it."""

    def __call__(self, session: Session) -> bool:
        return False

    def share(self, session: Session) -> float:
        """The share of the work until the pause that is done, from 0 to 1."""
        return session.share()


def execute(
    make: Callable[[SomeRun, Kept | None], SomeSession],
    run: SomeRun,
    folder: Folder,
    report: Callable[[SomeSession], None] = lambda session: None,
    paused: Callable[[SomeSession], bool] = lambda session: False,
    allow: Iterable[Any] = (),
) -> bool:
    """Execute a run from its checkpoint, or from its start, to its end or until it is paused.

    Args:
        make: the session of a run, from its start or from what a checkpoint has kept.
        report: called after every iteration, and once more at the end.
        allow: components of the user's own that the checkpoint may name; see `cones.load`.

    Returns:
        Whether the run is finished. After KeyboardInterrupt, which goes on to the caller, everything up to
        the last complete iteration is kept.

    If the disk is full, a warning says so, and the run goes on. If its end cannot be written: an `UnwrittenError`.
    """
    session = make(run, read_checkpoint(folder.checkpoint_path(run), allow))
    session.report = report
    keeper = _Keeper(run, folder, session, paused)
    iterate(session.strategy, session.evaluator, [session, keeper], session.asynchronous)
    report(session)
    if keeper.trouble is not None:
        raise UnwrittenError(str(keeper.trouble)) from keeper.trouble
    return session.reason() is not None


def read_checkpoint(path: Path, allow: Iterable[Any] = ()) -> Kept | None:
    """What a run goes on from, or None if it has not begun."""
    if not path.exists():
        return None
    try:
        strategy, extra = checkpoints.read(path, allow)
        strategy.state = replace(strategy.state, fault="")  # what was wrong may be repaired
        return strategy, extra
    except CheckpointError as error:
        raise CheckpointError(f"{error}; delete the file to start this run anew") from None


def _rows(rows: Any, iterations: int) -> list[dict[str, float]]:
    """The rows of a checkpoint, one for each iteration."""
    if not isinstance(rows, list) or len(rows) != iterations:
        raise CheckpointError(f"rows: expected one for each of {iterations} iterations, got {rows!r:.80}")
    for row in rows:
        if not isinstance(row, dict) or not all(isinstance(value, (int, float)) for value in row.values()):
            raise CheckpointError(f"rows: expected numbers by name, got {row!r:.80}")
    return [dict(row) for row in rows]


class _Keeper(Observer):
    """Reports, pauses, and writes record, checkpoint and results now and then and at the end."""

    def __init__(self, run: Named, folder: Folder, session: Session, paused: Callable[[Any], bool]) -> None:
        self._run, self._folder, self._session, self._paused = run, folder, session, paused
        self._time = time.monotonic()
        self.trouble: OSError | None = None  # with the last write

    def stop(self) -> StopReason | None:
        return PAUSED if self._paused(self._session) else None

    def told(self, seconds: float) -> None:
        self._session.report(self._session)
        if time.monotonic() - self._time >= KEEP_SECONDS:
            self.ended()
            self._time = time.monotonic()

    def ended(self) -> None:
        try:
            self._write()
            self.trouble = None
        except NotStorableError:
            raise
        except OSError as error:  # CheckpointError among them
            self.trouble = error
            warnings.warn(f"{error}; the files of an earlier iteration are kept", RuntimeWarning, stacklevel=2)

    def _write(self) -> None:
        session, folder, run = self._session, self._folder, self._run
        reason, checkpoint = session.reason(), folder.checkpoint_path(run)
        if reason is None or session.KEEPS_CHECKPOINT:
            checkpoints.save(checkpoint, session.strategy, session.state())
        session.write_results(folder, run)
        folder.write(run, reason is not None, "" if reason is None else reason.name, session.columns())
        if reason is not None and not session.KEEPS_CHECKPOINT:
            checkpoint.unlink(missing_ok=True)
