"""Runs over all cores: one process per run, one BLAS thread each."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TextIO

from cones.experiments.live_status import LiveStatus, Outcome
from cones.experiments.session import session_of
from cones.experiments.spec import AnyRun, Experiment
from cones.kernels.threads import core_count
from cones.records.folder import Folder
from cones.records.session import Pause, Session, execute

__all__ = ["run_experiment"]

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
REPORT_SECONDS = 0.5
GRACE_SECONDS = 1.0


def run_experiment(
    experiment: Experiment,
    folder: str | Path,
    *,
    only: Callable[[AnyRun], bool] = lambda run: True,
    pause: Pause | None = None,
    workers: int | None = None,
    stream: TextIO | None = None,
) -> Outcome:
    """Execute all runs that are not finished yet.

    Args:
        experiment: what to run.
        folder: where its records are; it belongs to this experiment from now on.
        only: selects the runs to execute now.
        pause: when to pause a run, with its checkpoint. It is sent to the runs' processes.
        workers: processes at a time, one per core by default.
        stream: where progress is shown, standard error by default.

    After Ctrl-C the runs in progress write their checkpoints; the next call continues them.
    """
    place = Folder(folder)
    place.make()
    with place.locked():
        return _run_all(experiment, place, only, pause or Pause(), workers, sys.stderr if stream is None else stream)


def _run_all(
    experiment: Experiment,
    place: Folder,
    only: Callable[[AnyRun], bool],
    pause: Pause,
    workers: int | None,
    stream: TextIO,
) -> Outcome:
    place.claim(experiment.specification())
    runs = [run for run in experiment.runs() if only(run)]
    unfinished = [run for run in runs if not place.is_finished(run)]
    pending = [run for run in unfinished if not place.is_without_checkpoint(run)]
    outcome = Outcome(skipped=len(runs) - len(pending))
    status = LiveStatus(len(runs), outcome, stream)
    if len(pending) < len(unfinished):
        status.say(
            f"{len(unfinished) - len(pending)} of them have a record without a checkpoint, and cannot go on; to run "
            "them anew, use another folder"
        )
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
                    target=_process, args=(run, str(place.path), messages, stop, pause), daemon=True
                )
                with _environment(dict.fromkeys(ONE_THREAD, "1")), _interrupts_ignored():
                    process.start()
                active[run.name] = process
                status.start(run)
            _listen(messages, active, status)
    except KeyboardInterrupt:
        outcome.interrupted = True
        stop.set()
        status.say("interrupted: the runs in progress write their checkpoints (Ctrl-C again to leave at once)")
        _wait(active)
    finally:
        for process in active.values():
            process.kill()
        status.close()
    return outcome


def _process(run: AnyRun, folder: str, messages: Any, stop: Any, pause: Pause) -> None:
    # Signals reach the whole process group, and the parent decides; workers that a run starts ignore Ctrl-C, too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, number):
            signal.signal(getattr(signal, number), lambda *_: None)
    name = run.name
    parent = multiprocessing.parent_process()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    reported = 0.0

    def report(session: Session) -> None:
        nonlocal reported
        if time.monotonic() - reported >= REPORT_SECONDS or session.reason() is not None or pause(session):
            reported = time.monotonic()
            messages.put((name, "progress", pause.share(session), session.headline()))

    try:
        finished = execute(
            session_of,
            run,
            Folder(folder),
            report,
            # If the parent was killed, nobody would ever stop this run.
            lambda session: stop.is_set() or (parent is not None and not parent.is_alive()) or pause(session),
            run.method.own_components(),  # the experiment file has named them
        )
        messages.put((name, "finished" if finished else "stopped" if stop.is_set() else "paused"))
    except Exception as error:
        messages.put((name, "failed", f"{type(error).__name__}: {error}", traceback.format_exc()))


def _end_with(parent: Any) -> None:
    """End this process soon after its parent was killed: the next command may start the same run again."""
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        time.sleep(GRACE_SECONDS)  # for a checkpoint after the iteration in progress
        os._exit(1)


def _listen(messages: Any, active: dict[str, BaseProcess], status: LiveStatus) -> None:
    """Receive messages for a moment, and find processes that died without one."""
    deadline = time.monotonic() + 0.2
    while True:
        try:
            name, kind, *details = messages.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            break
        if kind == "progress":
            status.progress(name, *details)
        else:
            active.pop(name).join()
            status.end(name, kind, *details)
    status.draw()
    for name, process in list(active.items()):
        if process.exitcode is not None and messages.empty():
            del active[name]
            status.end(name, "failed", f"its process died with exit code {process.exitcode}", "")


def _wait(active: dict[str, BaseProcess]) -> None:
    try:
        for process in active.values():
            process.join()
    except KeyboardInterrupt:
        pass


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """A process that starts in this block ignores Ctrl-C from its first moment: the parent decides."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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
