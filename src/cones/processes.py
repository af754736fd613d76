"""Pools of worker processes that leave Ctrl-C to their parent and end when they are told to."""

from __future__ import annotations

import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.context import BaseContext
from typing import Any

__all__ = ["end_workers", "worker_pool"]


def worker_pool(
    count: int, setup: Callable[..., None], *arguments: Any, context: BaseContext | None = None
) -> ProcessPoolExecutor:
    """Processes in each of which `setup(*arguments)` is called once; none starts before there is work."""
    return ProcessPoolExecutor(count, context, _begin, (setup, *arguments))


def _begin(setup: Callable[..., None], *arguments: Any) -> None:
    # Ctrl-C belongs to the parent, which ends the workers. A forked worker has the parent's handlers, and
    # one that turns SIGTERM into something else would not end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    setup(*arguments)


def end_workers(pool: ProcessPoolExecutor) -> None:
    """End the workers without waiting for work under way, which may take hours."""
    # No future is cancelled: the executor itself fails them when it finds its workers gone.
    processes = list((getattr(pool, "_processes", None) or {}).values())
    pool.shutdown(wait=False)
    for process in processes:
        process.terminate()
