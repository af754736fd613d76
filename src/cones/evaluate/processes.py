"""Pools of worker processes that ignore Ctrl-C and end with their parent."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.context import BaseContext
from typing import Any

__all__ = ["end_workers", "worker_pool"]


def worker_pool(
    count: int, setup: Callable[..., None], *arguments: Any, context: BaseContext | None = None
) -> ProcessPoolExecutor:
    """A pool of processes, each of which calls `setup(*arguments)` once. None starts before the first task."""
    return ProcessPoolExecutor(count, context, _begin, (setup, *arguments))


def _begin(setup: Callable[..., None], *arguments: Any) -> None:
    # Ctrl-C belongs to the parent, which ends the workers; a forked one has the parent's answer to SIGTERM.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    setup(*arguments)


def _end_with_parent() -> None:
    """End this process when its parent was killed; it would wait for tasks for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def end_workers(pool: ProcessPoolExecutor) -> None:
    """End the workers without waiting for their tasks, which may take hours."""
    # No future is cancelled: the executor itself fails them when it finds its workers gone.
    processes = list((getattr(pool, "_processes", None) or {}).values())
    pool.shutdown(wait=False)
    for process in processes:
        process.kill()  # one that has just been forked may still have the parent's answer to SIGTERM
