"""Tasks on an engine: candidates are sent, tried again after a failure, and given up."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import deque
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass, replace
from typing import Any

from cones.errors import InputError, StateError
from cones.evaluate.engine import Blame, CallTimeoutError, Engine
from cones.evaluate.evaluator import Objective
from cones.evaluate.task import run_task
from cones.types import Vector

__all__ = ["Dispatcher", "Task", "Tasks"]

# Seconds between looks for futures that somebody else has cancelled, of which nobody is told.
LOOK_SECONDS = 1.0
# Attempts after the first for a candidate whose worker was lost, by default.
RETRIES = 2
# Losses of a task that are not blamed on it; more of them are, so that a run ends.
LOSSES = 100


@dataclass(frozen=True)
class Task:
    first: int
    last: int
    attempt: int = 0  # how often it has failed
    losses: int = 0  # how often its worker was lost and that is not counted
    suspect: bool = False  # may have killed a worker: it is tried while no other is
    alone: bool = False  # was in a task that lost its worker; nobody knows whether it had begun there


class Dispatcher:
    """An engine with an objective, and what is known about its workers.

    Args:
        timeout, retries: see `DispatchEvaluator`.
    """

    def __init__(self, objective: Objective, engine: Engine, timeout: float | None, retries: int | None) -> None:
        self.objective, self.engine, self.timeout, self.retries = objective, engine, timeout, retries
        self.installed: Any = None
        try:
            self.reinstall()
        except BaseException:
            engine.abort()
            raise
        self._hanging: list[Future[Vector]] = []  # calls that were given up and still hold their workers

    def reinstall(self) -> None:
        """Send the objective; again if a lost worker may have held the only copy."""
        self.installed = self.engine.install(self.objective)

    def hanging(self) -> int:
        """The number of workers held by calls that were given up and may still return."""
        self._hanging = [future for future in self._hanging if not future.done()]
        return len(self._hanging)

    def gave_up(self, future: Future[Vector]) -> None:
        self._hanging.append(future)


class Tasks(ABC):
    """Tasks on an engine: they are sent, tried again after a failure, and given up."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._engine, self._timeout = dispatcher.engine, dispatcher.timeout
        self.workers = self._engine.workers  # once: a cluster has to be asked
        self._shared: Any = None
        self._raised: dict[int, BaseException] = {}
        self._waiting: deque[Task] = deque()
        self._under_way: dict[Future[Vector], tuple[Task, float]] = {}

    @abstractmethod
    def _part(self, task: Task) -> Any:
        """The candidates of a task, as they are sent."""

    @abstractmethod
    def _got(self, task: Task, losses: Vector) -> None:
        """Take the losses of a task."""

    @abstractmethod
    def _gave_up(self, candidate: int, reason: str) -> None:
        """Note that a candidate has no loss."""

    @abstractmethod
    def _share(self) -> None:
        """Send what all tasks need, if anything."""

    def _step(self, until: str) -> None:
        """Send what can be sent, wait for answers, and take them."""
        self._send()
        if not self._under_way:
            raise StateError(f"workers: all of them hang: no answer in timeout = {self._timeout:g} seconds")
        self._engine.wait(self._under_way, self._next_look(), until)
        for future in [future for future in self._under_way if future.done()]:
            if future in self._under_way:
                self._take(future)
        self._end_hanging()

    def close(self) -> None:
        # After an interrupt, the losses that have arrived are kept.
        for future, (task, _) in self._under_way.items():
            future.cancel()
            if future.done() and not future.cancelled() and future.exception() is None:
                self._got(task, future.result())
        self._unshare()

    def _unshare(self) -> None:
        if self._shared is not None:
            self._engine.unshare(self._shared)
            self._shared = None

    def _send(self) -> None:
        while self._waiting and len(self._under_way) < self._limit():
            task = self._waiting.popleft()
            part = self._part(task) if self._shared is None else self._shared
            try:
                future = self._engine.submit(
                    run_task, self._dispatcher.installed, part, task.first, task.last, timeout=self._timeout
                )
            except BrokenExecutor as error:
                self._waiting.appendleft(task)
                self._recover(error)
                continue
            allowed = self._timeout + self._engine.grace if self._timeout else math.inf
            deadline = time.monotonic() + allowed
            self._under_way[future] = task, deadline

    def _limit(self) -> int:
        """The most tasks in progress. One that may have killed a worker runs alone, so that it can be blamed."""
        free = self.workers - self._dispatcher.hanging()
        if self._waiting[0].suspect or any(task.suspect for task, _ in self._under_way.values()):
            return min(1, free)
        # With a timeout a task must not wait at a worker: its time would run.
        return free if self._timeout else (1 + self._engine.ahead) * free

    def _next_look(self) -> float:
        deadline = min(deadline for _, deadline in self._under_way.values())
        return min(LOOK_SECONDS, max(0.0, deadline - time.monotonic()))

    def _take(self, future: Future[Vector]) -> None:
        task, _ = self._under_way.pop(future)
        error = None if not future.cancelled() and future.exception() is None else _error_of(future)
        if error is None:
            self._got(task, future.result())
        elif isinstance(error, CallTimeoutError):
            self._failed(task, f"no answer in {self._timeout:g} seconds")
        elif self._engine.is_lost(error):
            self._lost(task, self._engine.blame(future, error, task.suspect))
            self._recover(error)
        else:
            cause = self._engine.cause(error)
            if self._dispatcher.retries is None or _is_ours(cause):
                if isinstance(cause, ModuleNotFoundError):
                    cause = StateError(
                        f"workers: a worker has no module {cause.name!r}; install it where the workers run"
                    )
                self._raised[task.first] = cause
                return
            self._failed(task, f"{type(cause).__name__}: {cause}", getattr(cause, "cones_candidate", None))

    def _lost(self, task: Task, blame: Blame) -> None:
        if blame is Blame.KILLER or task.losses >= LOSSES:
            late = self._timeout and 0.0 < self._engine.grace < math.inf
            reason = f", or gave no answer in {self._timeout:g} seconds" if late else ""
            self._failed(replace(task, alone=task.alone or task.last - task.first > 1), f"its worker was lost{reason}")
        elif blame is Blame.NONE:
            self._again([replace(task, losses=task.losses + 1)])
        else:
            singles = _singles(replace(task, losses=task.losses + 1, suspect=True))
            self._waiting.extend(singles)  # once the others are done

    def _failed(self, task: Task, reason: str, candidate: int | None = None) -> None:
        """Count a failure of a task. Of several candidates, each is tried alone first.

        Args:
            candidate: the one of them that failed, if that is known: it counts as tried.
        """
        allowed = RETRIES if self._dispatcher.retries is None else self._dispatcher.retries
        if task.last - task.first > 1:
            singles = _singles(task)
            if candidate is not None:
                self._again([single for single in singles if single.first != candidate])
                self._failed(singles[candidate - task.first], reason)
            else:
                self._again(singles)
        elif task.attempt < allowed:
            self._again([replace(task, attempt=task.attempt + 1)])
        else:
            tries = f"{task.attempt + 1} times" if task.attempt else "once"
            self._gave_up(task.first, f"{reason} (tried {tries}{' alone' if task.alone else ''})")

    def _again(self, tasks: list[Task]) -> None:
        self._waiting.extendleft(reversed(tasks))

    def _recover(self, error: BaseException) -> None:
        shares_again = self._engine.recover()
        if shares_again or isinstance(error, BrokenExecutor):
            # What the others need may be gone, too, and not all of them would ever say so.
            for future in self._under_way:
                future.cancel()
            self._again([task for task, _ in self._under_way.values()])
            self._under_way.clear()
        if shares_again:
            self._dispatcher.reinstall()
            self._unshare()
            self._share()

    def _end_hanging(self) -> None:
        now = time.monotonic()
        hanging = [future for future, (_, deadline) in self._under_way.items() if deadline <= now and not future.done()]
        for future in hanging:
            task, _ = self._under_way.pop(future)
            if self._engine.withdraw(future):
                self._again([task])
                continue
            if not self._engine.give_up(future):
                self._dispatcher.gave_up(future)
            self._failed(task, f"no answer in {self._timeout:g} seconds")


def _singles(task: Task) -> list[Task]:
    """Its candidates, each as a task of its own."""
    return [replace(task, first=k, last=k + 1) for k in range(task.first, task.last)]


def _error_of(future: Future[Vector]) -> BaseException:
    try:
        future.result()
    except BaseException as error:
        return error
    raise AssertionError("a future without an error was asked for it")


def _is_ours(error: BaseException) -> bool:
    """True for errors of the setup, which another attempt cannot mend."""
    return isinstance(error, (InputError, ModuleNotFoundError))
