"""What runs in a worker process: calls, one after the other, until the parent says stop or is gone."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import select
import signal
import socket
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from cones.errors import StateError
from cones.evaluate.channel import receive, send

__all__ = ["BEGUN", "READY", "STOP", "WorkerTraceback", "dumps", "portable", "serve"]

READY, BEGUN, STOP = b"ready", b"begun", b""


class WorkerTraceback(Exception):  # noqa: N818 - it is never raised, only shown as the cause of what was
    """The traceback of an exception in a worker process, as text."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


def dumps(value: Any) -> bytes:
    """Pickle a value for a process that has not run the user's script: what is defined there goes by value.

    That, and lambdas and closures, takes the package cloudpickle.
    """
    try:
        from cloudpickle import dumps as by_value
    except ImportError:
        pickled = pickle.dumps(value)
        if b"__main__" in pickled:
            raise pickle.PicklingError("it is defined in a script, and cloudpickle is not installed") from None
        return pickled
    return bytes(by_value(value))


def serve(end: socket.socket, others: tuple[socket.socket, ...], setup: Callable[..., None], value: Any) -> None:
    """The life of a worker process.

    Args:
        end: the worker's end of the channel.
        others: inherited ends, to close.
        setup: called once, with `value`, or with what it was if it is pickled.
    """
    for other in others:
        other.close()
    # Ctrl-C belongs to the parent, which ends the workers; a forked one has the parent's answer to SIGTERM.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)  # programs that calls start are in this group, and end with it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        setup(pickle.loads(value) if isinstance(value, bytes) else value)
    except BaseException as error:
        with suppress(ConnectionError):
            send(end, pickle.dumps((False, StateError(f"{type(error).__name__}: {error}"), traceback.format_exc())))
        return
    with suppress(ConnectionError):  # the parent may have left
        send(end, READY)
        while message := receive(end):
            send(end, BEGUN)
            send(end, _answer(message))


def _answer(message: bytes) -> bytes:
    """(True, result), or (False, exception, its traceback), pickled."""
    try:
        call, arguments = pickle.loads(message)
        return pickle.dumps((True, call(*arguments)))
    except (Exception, SystemExit) as error:
        text = traceback.format_exc()
        return dumps((False, portable(error, dumps), text))


def portable(error: BaseException, dumps: Callable[[Any], bytes] = pickle.dumps) -> BaseException:
    """The exception, or one with the same message if it would not survive the way to another process."""
    try:
        pickle.loads(dumps(error))
        return error
    except Exception:
        other = StateError(f"fun raised {type(error).__name__}: {error}")
        for note in getattr(error, "__notes__", []):
            other.add_note(note)
        return other


def _end_with_parent() -> None:
    """When the parent was killed, end this process and the programs it has started."""
    parent = multiprocessing.parent_process()
    if parent is None or parent.pid is None:
        return
    if hasattr(os, "pidfd_open"):
        with suppress(ProcessLookupError):
            ended = select.poll()
            ended.register(os.pidfd_open(parent.pid), select.POLLIN)
            ended.poll()
    else:
        parent.join()
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
