"""The interface of an engine, workers that take calls and give futures; and engines on executors."""

from __future__ import annotations

import multiprocessing
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from enum import Enum
from typing import Any

from cones.errors import StateError
from cones.evaluate.evaluator import Objective
from cones.evaluate.worker import portable
from cones.kernels.threads import thread_count

__all__ = ["Blame", "CallTimeoutError", "Engine", "ExecutorEngine", "ThreadEngine", "WorkerLostError"]


class WorkerLostError(Exception):
    """The worker that ran a call has died."""


class CallTimeoutError(Exception):
    """A call gave no answer in its time, and its worker was ended."""


class Blame(Enum):
    """What a call has to do with the loss of its worker."""

    NONE = "it never began, or lost what it needed: it is sent again, and that is not counted"
    SUSPECT = "it or another killed it: it is tried alone, and that is not counted"
    KILLER = "it ran there alone: that counts as a failure"


class Engine(ABC):
    """Workers that run tasks.

    Attributes:
        workers: tasks that run at a time.
        slow: seconds per candidate from which on each is a task of its own.
        least: seconds of work that are worth a task.
        ahead: tasks that wait at each worker besides the one it runs.
        grace: seconds beyond the timeout after which a call is given up, for engines that end a hanging call
            themselves.
    """

    workers: int = 1
    # Sending costs little then, nobody waits for the last candidate of a block, and an interrupt loses less.
    slow: float = 0.05
    least: float = 0.0
    ahead: int = 1
    grace: float = 0.0

    def clock(self, workers: int) -> float:
        """Seconds of work so far: as if all workers were busy all the time, unless the engine knows better."""
        return workers * time.monotonic()

    def install(self, objective: Objective) -> Any:
        """What a task takes as its objective; None if the workers have it already."""
        return self.share(objective)

    def share(self, value: Any) -> Any:
        """Send a value that many tasks need once, where the engine can. Returns what a task takes in its place."""
        return value

    def unshare(self, token: Any) -> None:  # noqa: B027 - most have nothing to do
        """Forget a shared value."""

    @abstractmethod
    def submit(self, call: Callable[..., Any], *arguments: Any, timeout: float | None = None) -> Future[Any]:
        """Start `call(*arguments)` on a worker. An engine that can end a hanging call may use `timeout`."""

    def is_lost(self, error: BaseException) -> bool:
        """True if the worker failed, and not the call."""
        return isinstance(error, (WorkerLostError, BrokenExecutor, CancelledError))

    def blame(self, future: Future[Any], error: BaseException, alone: bool) -> Blame:
        """What a call that lost its worker has to do with it. `alone` says that no other call was in progress."""
        return Blame.KILLER

    def cause(self, error: BaseException) -> BaseException:
        """The exception that the call raised, without the engine's wrapping."""
        return error

    def recover(self) -> bool:
        """Make the engine usable again after a worker was lost; raise if that is impossible.

        True if shared values must be sent again: the worker may have held the only copy.
        """
        return False

    def wait(self, futures: Collection[Future[Any]], timeout: float, return_when: str) -> None:
        """Wait for futures, as `concurrent.futures.wait` does; it may return earlier."""
        wait(futures, timeout, return_when)

    def withdraw(self, future: Future[Any]) -> bool:
        """Take back a call that no worker has started. False if it has started, or the engine cannot tell."""
        return False

    def give_up(self, future: Future[Any]) -> bool:
        """Stop a hanging call. True if its worker is free again, or replaced."""
        future.cancel()
        return False

    def close(self) -> None:  # noqa: B027 - most belong to the caller
        """Release what the engine itself has started."""

    def abort(self) -> None:
        """Release it without waiting for tasks in progress."""
        self.close()


class ExecutorEngine(Engine):
    """Any `concurrent.futures.Executor`. It belongs to the caller and is left running."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        known = getattr(executor, "_max_workers", None) or getattr(executor, "num_workers", None)
        self.workers = int(known or thread_count())

    def submit(self, call: Callable[..., Any], *arguments: Any, timeout: float | None = None) -> Future[Any]:
        try:
            return self._executor.submit(_carried, call, *arguments)
        except RuntimeError as error:
            if isinstance(error, BrokenExecutor):
                raise
            message = f"workers: the executor takes no work ({error}); pass one that is not shut down"
            raise StateError(message) from None

    def wait(self, futures: Collection[Future[Any]], timeout: float, return_when: str) -> None:
        """Wait for futures, as `concurrent.futures.wait` does; it may return earlier."""
        wait(futures, timeout, return_when)

    def withdraw(self, future: Future[Any]) -> bool:
        return future.cancel()  # its workers do the work of others

    def recover(self) -> bool:
        try:
            self.submit(int).result()
            return False
        except BrokenExecutor as error:
            raise StateError(
                "workers: a worker of the executor died (killed, out of memory, or a crash in fun), and the executor "
                "is broken; with workers=K instead of an executor the pool is made anew"
            ) from error


def _carried(call: Callable[..., Any], *arguments: Any) -> Any:
    """Make the call; an exception that cannot be pickled would break a pool of processes."""
    try:
        return call(*arguments)
    except (Exception, SystemExit) as error:
        if multiprocessing.parent_process() is None:
            raise
        raise portable(error) from None


class ThreadEngine(ExecutorEngine):
    """Threads of this process, for compiled functions that release the interpreter lock."""

    slow, least, ahead = 0.002, 0.004, 10**6  # a task costs some 50 microseconds, and its queue nothing

    def clock(self, workers: int) -> float:
        return time.process_time()  # a busy machine makes no task longer

    def __init__(self, workers: int) -> None:
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="cones")
        super().__init__(self._threads)

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)

    def abort(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
