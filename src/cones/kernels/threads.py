"""A pool of threads for work on parts of arrays, where NumPy releases the interpreter lock.

`OMP_NUM_THREADS` limits it as it limits BLAS: a program that runs many processes sets it to 1.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

__all__ = ["core_count", "for_blocks", "thread_count"]

_pool: ThreadPoolExecutor | None = None


def core_count() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_count() -> int:
    """Cores this process may use, or fewer if `OMP_NUM_THREADS` says so."""
    cores = core_count()
    limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return max(1, min(cores, int(limit)) if limit.isdecimal() else cores)


def for_blocks(work: Callable[[int, int], None], count: int, parallel: bool = True) -> None:
    """Call `work(first, last)` on blocks that cover 0 to `count`: one per thread, or a single one."""
    threads = min(thread_count(), count) if parallel else 1
    if threads <= 1:
        work(0, count)
        return
    edges = [count * i // threads for i in range(threads + 1)]
    blocks = list(pairwise(edges))
    waiting = [_threads().submit(work, *block) for block in blocks[1:]]
    work(*blocks[0])
    for future in waiting:
        future.result()


def _threads() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(thread_count(), thread_name_prefix="cones")
    return _pool


def _forget() -> None:
    # A forked child has the pool's object but not its threads.
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
