"""The interface of an engine: workers that take calls and give futures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from typing import Any

from cones.errors import StateError
from cones.evaluate.evaluator import Objective
from cones.kernels.threads import thread_count
from cones.sampling import Population
from cones.types import Vector

__all__ = ["Engine", "ExecutorEngine", "run_task"]


class Engine(ABC):
    """Where tasks run.

    Attributes:
        workers: tasks that run at a time.
        blames: whether an exception about a lost worker belongs to the task that has it; if not, any task that was
            under way may be the one that killed the worker.
        grace: seconds beyond its timeout after which a call is given up from here, for engines whose workers end a
            call that hangs themselves, and take long to start.
    """

    workers: int = 1
    blames: bool = True
    grace: float = 0.0

    def install(self, objective: Objective) -> Any:
        """What stands for the objective in a task; None if the workers have it already."""
        return self.share(objective)

    def share(self, value: Any) -> Any:
        """What stands for a value that many tasks need; it travels once where an engine can do that."""
        return value

    def unshare(self, token: Any) -> None:  # noqa: B027 - most have nothing to do
        """Forget a shared value."""

    @abstractmethod
    def submit(self, call: Callable[..., Any], *arguments: Any, timeout: float | None = None) -> Future[Any]:
        """Begin `call(*arguments)` on a worker; one that can end a call that hangs may use `timeout`."""

    def is_lost(self, error: BaseException) -> bool:
        """Whether the worker failed, rather than the call."""
        return isinstance(error, (BrokenExecutor, CancelledError))

    def is_to_blame(self, error: BaseException) -> bool:
        """Whether the task that has this exception about a lost worker is the one that killed it."""
        return self.blames

    def cause(self, error: BaseException) -> BaseException:
        """The exception that the call raised, without what the engine put around it."""
        return error

    def recover(self) -> None:  # noqa: B027 - most recover by themselves
        """Make the engine able to work again after a worker was lost; raise if that is impossible."""

    def withdraw(self, future: Future[Any]) -> bool:
        """Take a call back that no worker has begun, if that can be told."""
        return False

    def give_up(self, future: Future[Any]) -> bool:
        """Stop a call that hangs. True if its worker is free again, or replaced."""
        future.cancel()
        return False

    def close(self) -> None:  # noqa: B027 - most belong to the caller
        """Release what the engine itself has started."""

    def abort(self) -> None:
        """Release it without waiting for work under way."""
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
        return future.cancel()  # its workers are busy with something else

    def recover(self) -> None:
        try:
            self.submit(int).result()
        except BrokenExecutor as error:
            raise StateError(
                "workers: a worker of the executor died (killed, out of memory, or a crash in fun), and the executor "
                "is broken; with workers=K instead of an executor the pool is made anew"
            ) from error


def run_task(objective: Objective | None, candidates: Any, first: int, last: int) -> Vector:
    """The losses of candidates `first` to `last`; `candidates` are these rows, or a population to make them from."""
    from cones.evaluate import pool

    chosen = pool.installed() if objective is None else objective
    if isinstance(candidates, pool.SharedPopulation):
        candidates = candidates.opened()
    try:
        if isinstance(candidates, Population):
            return chosen.losses_of(candidates, first, last)
        return chosen.losses(candidates, first)
    except Exception as error:
        raise pool.portable(error) from None
