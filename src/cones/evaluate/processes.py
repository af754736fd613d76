"""Worker processes as their parent sees them: how they start, how their death is seen, how they are ended."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from cones.evaluate.channel import Channel
from cones.evaluate.interrupts import interrupts_deferred
from cones.evaluate.worker import STOP, dumps, serve

__all__ = ["WorkerProcess", "started"]


class WorkerProcess:
    """A process that serves calls.

    Args:
        method: "fork", "spawn" or "forkserver".
        setup: called once in the process, with `value`; pickled if it is bytes.
        runs_script: True if a process that is not forked imports the user's script first, as `multiprocessing` does.
    """

    def __init__(self, method: str, setup: Callable[..., None], value: Any, runs_script: bool = True) -> None:
        mine, its = socket.socketpair()
        others = (mine,) if method == "fork" else ()
        context: Any = multiprocessing.get_context(method)
        self._process: BaseProcess = context.Process(target=serve, args=(its, others, setup, value))
        try:
            with interrupts_deferred(), nullcontext() if runs_script else _script_left_out():
                self._process.start()
        except BaseException:
            mine.close()
            if self._process.pid is not None:  # interrupted after its start
                self._process.kill()
            raise
        finally:
            its.close()
        self.channel = Channel(mine)
        self.since = time.monotonic()
        pid = self._process.pid
        assert pid is not None
        self.pid: int = pid
        # A pipe, as multiprocessing's sentinel is, would stay open in the children of a dead process.
        self._end: int | None = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None

    def fileno(self) -> int | None:
        """What becomes readable when the process ends; None if the system has no such thing."""
        return self._end

    def has_ended(self) -> bool:
        if self._end is None:
            return self._process.exitcode is not None
        poll = select.poll()
        poll.register(self._end, select.POLLIN)
        return bool(poll.poll(0))

    def exit_code(self) -> int:
        """The exit code of a process that has ended; negative if it was killed, 0 if it is unknown."""
        return self._process.exitcode or 0

    def ask_to_stop(self) -> None:
        """Tell the process to end after the call it runs."""
        self.channel.put(STOP)

    def wait(self, seconds: float) -> None:
        """Wait until the process has ended, but not longer than `seconds`."""
        deadline = time.monotonic() + seconds
        while not self.has_ended() and time.monotonic() < deadline:
            time.sleep(0.002)

    def kill(self) -> None:
        """End the process, and the programs that it has started."""
        if hasattr(os, "killpg"):
            # Before the process is waited for: until then nobody else has its number.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self._process.kill()  # a new one may not have its group yet, and has the parent's answer to SIGTERM
        self._process.join()
        with suppress(ValueError):  # somebody else has waited for it
            self._process.close()
        self.channel.close()
        if self._end is not None:
            os.close(self._end)

    def is_waiting(self) -> bool:
        """True if the process has no programs of its own and has used next to no processor time."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
            children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        except OSError:
            return False
        return not children.strip() and (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") < 1.0


def started(method: str | None, setup: Callable[..., None], value: Any) -> WorkerProcess:
    """A new worker process.

    Args:
        method: None forks where that is safe. Where a library has threads that do not survive it, as PyTorch has after
            its first operation, the process is a fresh one; `value` is then sent by value, and if that is impossible
            the process is forked all the same.
    """
    if method is not None and method != "fork":
        return WorkerProcess(method, setup, pickle.dumps(value))
    worker = WorkerProcess("fork", setup, value)
    if method is None and _has_foreign_threads():
        with suppress(Exception):  # what cannot be sent
            fresh = WorkerProcess("spawn", setup, dumps(value), runs_script=False)
            worker.kill()
            return fresh
    return worker


def _has_foreign_threads() -> bool:
    """True if this process has threads that Python did not start and that the last fork did not end.

    Libraries that survive a fork, such as OpenBLAS, end their threads before it.
    """
    try:
        threads = {int(name) for name in os.listdir("/proc/self/task")}
    except OSError:  # not Linux
        return False
    return bool(threads - {thread.native_id for thread in threading.enumerate()})


@contextmanager
def _script_left_out() -> Iterator[None]:
    """Hide the user's script from `multiprocessing`, so that a fresh process does not run it: it may be unguarded."""
    script = vars(sys.modules["__main__"])
    names: tuple[str, ...] = ("__file__", "__spec__")
    kept = {name: script.pop(name) for name in names if name in script}
    script["__spec__"] = None
    try:
        yield
    finally:
        script.update(kept)
