"""Interrupts that wait: Ctrl-C must not arrive while a process is started.

Functions that libraries have registered with `os.register_at_fork` run around a fork. Python prints what they raise as
"Exception ignored" and drops it: the interrupt would be noise, and lost.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["interrupts_deferred"]

# In this order, so that the one which comes most often is the last to be handled as before.
NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Call the program's own handlers of SIGINT, SIGTERM and SIGHUP after the block, not in it.

    A process that is forked in the block has handlers that do nothing.
    """
    if threading.current_thread() is not threading.main_thread():  # handlers run in the main thread only
        yield
        return
    arrived: list[tuple[int, FrameType | None]] = []
    kept: dict[int, Any] = {}

    def defer(number: int, frame: FrameType | None) -> None:
        arrived.append((number, frame))

    try:
        for name in NAMES:
            number = getattr(signal, name, None)
            if number is not None and callable(handler := signal.getsignal(number)):
                kept[number] = handler
                signal.signal(number, defer)
        yield
    finally:
        for number, handler in reversed(kept.items()):
            signal.signal(number, handler)
        for number, frame in arrived:
            kept[number](number, frame)
