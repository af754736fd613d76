"""A thread pool for work on parts of arrays, where NumPy releases the interpreter lock.

`OMP_NUM_THREADS` limits it, like BLAS. Programs with many processes set it to 1.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

__all__ = ["core_count", "for_blocks", "thread_count"]

_pool: ThreadPoolExecutor | None = None


def core_count() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_count() -> int:
    """Number of cores that this process may use, limited by `OMP_NUM_THREADS`."""
    cores = core_count()
    limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return max(1, min(cores, int(limit)) if limit.isdecimal() else cores)


def for_blocks(work: Callable[[int, int], None], count: int, parallel: bool = True) -> None:
    """Call `work(first, last)` on blocks that cover range(count): one block per thread, or one if not `parallel`."""
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
    # A forked child inherits the pool object but not its threads.
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
