"""The interface of an engine, workers that take calls and give futures; and engines on executors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from typing import Any

from cones.errors import StateError
from cones.evaluate.evaluator import Objective
from cones.kernels.threads import thread_count

__all__ = ["Engine", "ExecutorEngine", "ThreadEngine"]


class Engine(ABC):
    """Workers that run tasks.

    Attributes:
        workers: tasks that run at a time.
        slow: seconds per candidate from which on each is a task of its own.
        ahead: tasks that wait at each worker besides the one it runs.
        blames: True if the task that reports a lost worker is the one that killed it; False if it may be any task in
            progress.
        grace: seconds beyond the timeout after which a call is given up, for engines whose workers end a hanging call
            themselves, and take long to start.
    """

    workers: int = 1
    # Sending costs little then, nobody waits for the last candidate of a block, and an interrupt loses less.
    slow: float = 0.05
    ahead: int = 1
    blames: bool = True
    grace: float = 0.0

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
        return isinstance(error, (BrokenExecutor, CancelledError))

    def is_to_blame(self, error: BaseException) -> bool:
        """True if the task that reports this lost worker has killed it."""
        return self.blames

    def cause(self, error: BaseException) -> BaseException:
        """The exception that the call raised, without the engine's wrapping."""
        return error

    def recover(self) -> None:  # noqa: B027 - most recover by themselves
        """Make the engine usable again after a worker was lost; raise if that is impossible."""

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
            return self._executor.submit(call, *arguments)
        except RuntimeError as error:
            if isinstance(error, BrokenExecutor):
                raise
            message = f"workers: the executor takes no work ({error}); pass one that is not shut down"
            raise StateError(message) from None

    def withdraw(self, future: Future[Any]) -> bool:
        return future.cancel()  # its workers do the work of others

    def recover(self) -> None:
        try:
            self.submit(int).result()
        except BrokenExecutor as error:
            raise StateError(
                "workers: a worker of the executor died (killed, out of memory, or a crash in fun), and the executor "
                "is broken; with workers=K instead of an executor the pool is made anew"
            ) from error


class ThreadEngine(ExecutorEngine):
    """Threads of this process, for compiled functions that release the interpreter lock."""

    slow, ahead = 0.002, 10**6  # a task costs some microseconds, and its queue nothing

    def __init__(self, workers: int) -> None:
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="cones")
        super().__init__(self._threads)

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)

    def abort(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
