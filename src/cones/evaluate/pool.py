"""The engine that starts worker processes itself, replaces those that die, and ends those that hang."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from typing import Any

from cones.errors import InputError, StateError
from cones.evaluate.engine import Engine
from cones.evaluate.evaluator import Objective
from cones.evaluate.processes import end_workers, worker_pool
from cones.evaluate.shared import SharedValue
from cones.evaluate.task import install

__all__ = ["PoolEngine", "check_can_be_sent"]


class PoolEngine(Engine):
    """A pool of processes that lives as long as the engine.

    Args:
        workers: processes.
        start_method: "fork", "spawn" or "forkserver"; by default that of `multiprocessing`.
    """

    blames = False  # when one process of a pool dies, all of its tasks fail

    def __init__(self, workers: int, start_method: str | None = None) -> None:
        self.workers = workers
        self._start_method = start_method or multiprocessing.get_start_method()
        self._objective: Objective | None = None
        self._executor: ProcessPoolExecutor | None = None
        self._has_begun = False

    def install(self, objective: Objective) -> None:
        if self._start_method == "fork":
            self._has_begun = True  # a forked worker has everything that this process has
        else:
            check_can_be_sent(objective)
        self._objective = objective

    def share(self, value: Any) -> Any:
        return SharedValue.of(value)

    def unshare(self, token: Any) -> None:
        token.forget()

    def submit(self, call: Callable[..., Any], *arguments: Any, timeout: float | None = None) -> Future[Any]:
        if self._executor is None:
            context = multiprocessing.get_context(self._start_method)
            self._executor = worker_pool(self.workers, install, self._objective, context=context)
        if not self._has_begun:
            self._begin()
        return self._executor.submit(call, *arguments)

    def _begin(self) -> None:
        """Find a worker that cannot start; its first candidate would be blamed for its death."""
        assert self._executor is not None
        try:
            self._executor.submit(int).result()
        except BrokenExecutor:
            raise StateError(
                "workers: a worker process could not start (standard error says why); define fun at the top of a "
                'module that can be imported, and keep the code of a script under `if __name__ == "__main__":`'
            ) from None
        self._has_begun = True

    def recover(self) -> None:
        self.abort()

    def give_up(self, future: Future[Any]) -> bool:
        self.abort()  # the tasks of the others are sent again
        return True

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)
            self._executor = None

    def abort(self) -> None:
        if self._executor is not None:
            end_workers(self._executor)
            self._executor = None


def check_can_be_sent(objective: Objective, dumps: Callable[[Any], bytes] = pickle.dumps) -> None:
    """Raise an error unless the objective can be pickled."""
    try:
        dumps(objective)
    except Exception as error:
        raise InputError(
            f"fun: expected a function that can be sent to worker processes, got one that cannot be pickled "
            f"({error}); define it at the top of a module, or pass a ThreadPoolExecutor as workers"
        ) from None
