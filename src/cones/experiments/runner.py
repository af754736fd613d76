"""Runs over all cores: one process per run, one BLAS thread each, progress on the terminal."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TextIO

from cones.display import duration
from cones.experiments.execute import execute
from cones.experiments.records import Folder
from cones.experiments.spec import Experiment, Run
from cones.threads import core_count

__all__ = ["Outcome", "run_experiment"]

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


@dataclass
class Outcome:
    """What became of an experiment."""

    finished: int = 0
    skipped: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def complete(self) -> bool:
        return not self.failed and not self.interrupted


def run_experiment(
    experiment: Experiment,
    folder: str | Path,
    *,
    only: Callable[[Run], bool] = lambda run: True,
    workers: int | None = None,
    stream: TextIO | None = None,
) -> Outcome:
    """Execute all runs that are not recorded to their end yet.

    Args:
        experiment: what to run.
        folder: where its records are; it belongs to this experiment from now on.
        only: which of its runs to execute now.
        workers: processes at a time, one per core by default.
        stream: where progress is shown, standard error by default.

    Ctrl-C lets the runs under way write their checkpoints and returns; the next call takes them up.
    """
    place = Folder(folder)
    place.claim(experiment)
    runs = [run for run in experiment.runs() if only(run)]
    pending = [run for run in runs if not place.is_finished(run)]
    outcome = Outcome(skipped=len(runs) - len(pending))
    board = _Board(len(runs), outcome, sys.stderr if stream is None else stream)
    slots = min(workers or core_count(), max(len(pending), 1))
    context = multiprocessing.get_context("spawn")  # fresh processes, in which BLAS starts with one thread
    messages: Any = context.Queue()
    stop = context.Event()
    active: dict[str, BaseProcess] = {}
    try:
        while pending or active:
            while pending and len(active) < slots:
                run = pending.pop(0)
                process: BaseProcess = context.Process(
                    target=_process, args=(run, str(folder), messages, stop), daemon=True
                )
                with _environment(dict.fromkeys(ONE_THREAD, "1")):
                    process.start()
                active[run.name] = process
                board.start(run)
            _listen(messages, active, board)
    except KeyboardInterrupt:
        outcome.interrupted = True
        stop.set()
        board.say("interrupted: the runs under way write their checkpoints (Ctrl-C again to leave at once)")
        _wait(active)
    finally:
        for process in active.values():
            process.terminate()
        board.close()
    return outcome


def _process(run: Run, folder: str, messages: Any, stop: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    name = run.name
    parent = os.getppid()
    try:
        finished = execute(
            run,
            Folder(folder),
            lambda share, loss: messages.put((name, "progress", share, loss)),
            # If the parent was killed, nobody would ever stop this run.
            lambda: stop.is_set() or os.getppid() != parent,
        )
        messages.put((name, "finished" if finished else "stopped", 0.0, 0.0))
    except Exception as error:
        messages.put((name, "failed", f"{type(error).__name__}: {error}", traceback.format_exc()))


def _listen(messages: Any, active: dict[str, BaseProcess], board: _Board) -> None:
    """Take messages for a moment, and notice processes that died without a word."""
    deadline = time.monotonic() + 0.2
    while True:
        try:
            name, kind, *details = messages.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            break
        if kind == "progress":
            board.progress(name, *details)
        else:
            active.pop(name).join()
            board.end(name, kind, *details)
    board.draw()
    for name, process in list(active.items()):
        if process.exitcode is not None and messages.empty():
            del active[name]
            board.end(name, "failed", f"its process died with exit code {process.exitcode}", "")


def _wait(active: dict[str, BaseProcess]) -> None:
    try:
        for process in active.values():
            process.join()
    except KeyboardInterrupt:
        pass


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class _Board:
    """Progress: on a terminal a block that is redrawn, elsewhere a line per finished run."""

    def __init__(self, total: int, outcome: Outcome, stream: TextIO) -> None:
        self._total, self._outcome, self._stream = total, outcome, stream
        self._terminal = stream.isatty()
        self._begin = time.monotonic()
        self._runs: dict[str, tuple[float, float, float]] = {}  # begin, share, loss
        self._height = 0
        self._drawn = 0.0
        if outcome.skipped:
            self.say(f"{outcome.skipped} of {total} runs are finished already")

    def start(self, run: Run) -> None:
        self._runs[run.name] = (time.monotonic(), 0.0, float("nan"))

    def progress(self, name: str, share: float, loss: float) -> None:
        if name in self._runs:
            self._runs[name] = (self._runs[name][0], share, loss)

    def end(self, name: str, kind: str, message: Any = "", details: Any = "") -> None:
        begin, _, loss = self._runs.pop(name)
        if kind == "finished":
            self._outcome.finished += 1
            self.say(f"{name}  mean loss {loss:.6g}  {duration(time.monotonic() - begin)}  {self._overall()}")
        elif kind == "failed":
            self._outcome.failed[name] = str(message)
            self.say(f"{name}  FAILED: {message}")
            if details and os.environ.get("CONES_DEBUG"):
                self.say(str(details))

    def _overall(self) -> str:
        done = self._outcome.finished
        left = self._total - self._outcome.skipped - done - len(self._outcome.failed)
        share = done + sum(share for _, share, _ in self._runs.values())
        text = f"[{self._outcome.skipped + done}/{self._total}]"
        if left > 0 and share > 0.0:
            rate = (time.monotonic() - self._begin) / share
            text += f" about {duration(rate * max(0.0, done + left - share))} left"
        return text

    def draw(self) -> None:
        if not self._terminal or time.monotonic() - self._drawn < 0.2:
            return
        self._drawn = time.monotonic()
        lines = []
        for name, (begin, share, loss) in self._runs.items():
            bar = "#" * round(20 * share)
            left = f"{duration((time.monotonic() - begin) * (1 - share) / share)} left" if share > 0.0 else "starting"
            lines.append(f"  [{bar:<20}] {name}  {100 * share:3.0f}%  mean loss {loss:.5g}  {left}")
        lines.append(f"  {self._overall()}")
        self._clear()
        width = os.get_terminal_size(self._stream.fileno()).columns if hasattr(self._stream, "fileno") else 120
        self._stream.write("".join(line[: width - 1] + "\n" for line in lines))
        self._stream.flush()
        self._height = len(lines)

    def say(self, text: str) -> None:
        self._clear()
        self._stream.write(text + "\n")
        self._stream.flush()

    def _clear(self) -> None:
        if self._height:
            self._stream.write(f"\x1b[{self._height}A\x1b[J")
            self._height = 0

    def close(self) -> None:
        self._clear()
        self._stream.flush()
