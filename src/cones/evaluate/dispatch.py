"""Evaluation on an engine: populations in a few tasks per worker, or candidates one after the other."""

from __future__ import annotations

import math
import time
from collections import deque
from concurrent.futures import FIRST_COMPLETED, FIRST_EXCEPTION
from itertools import pairwise
from typing import Any

from cones.evaluate.attempts import Dispatcher, Task, Tasks
from cones.evaluate.candidates import Candidates, is_lazy, rows
from cones.evaluate.engine import Engine
from cones.evaluate.evaluator import Evaluator, Objective
from cones.evaluate.stream import Stream
from cones.types import Vector

__all__ = ["DispatchEvaluator"]

# A few tasks per worker: large ones cost less to send, several even out candidates that take longer.
TASKS_PER_WORKER = 4


class DispatchEvaluator(Evaluator):
    """Evaluates on the workers of an engine.

    Args:
        timeout: seconds a candidate may take. Each candidate is then a task of its own, as slow ones are.
        retries: how often a candidate that raises, hangs or loses its worker is tried again before it counts as NaN.
            If None, what the function raises is raised, and lost workers and hanging calls are tried again twice.
    """

    def __init__(
        self, objective: Objective, engine: Engine, timeout: float | None = None, retries: int | None = None
    ) -> None:
        super().__init__()
        self._engine, self._timeout, self._objective = engine, timeout, objective
        self._dispatcher = Dispatcher(objective, engine, timeout, retries)
        self._seconds = 0.0  # that a candidate of the last population took

    def goes_alone(self, candidates: Candidates) -> bool:
        """True if each candidate is a task of its own. A `Population` is too large to send so often."""
        batched = self._objective.vectorized and not self._objective.rowwise
        slow = self._seconds > self._engine.slow and not batched and not is_lazy(candidates)
        return slow or self._timeout is not None

    def losses(self, candidates: Candidates) -> Vector:
        self.partial = self._objective.unknown(len(candidates))
        self.failures = {}
        count, workers = len(candidates), min(self._engine.workers, len(candidates))
        begin = self._engine.clock(workers)
        tasks = count if self.goes_alone(candidates) else self._tasks(count, workers)
        round_ = _Round(self._dispatcher, candidates, tasks, self.partial, self.failures)
        try:
            round_.run()
        finally:
            round_.close()
        self._seconds = (self._engine.clock(workers) - begin) / count
        return self.partial.copy()

    def _tasks(self, count: int, workers: int) -> int:
        """Into how many tasks candidates go: a few per worker, fewer if each would have next to nothing to do."""
        per_worker, work = TASKS_PER_WORKER, count * self._seconds
        if work and self._engine.least:
            per_worker = min(per_worker, max(1, int(work / (workers * self._engine.least))))
        return min(count, per_worker * workers)

    def stream(self) -> Stream[Any]:
        return _DispatchStream(self._dispatcher, self._objective)

    def close(self) -> None:
        self._engine.close()

    def abort(self) -> None:
        self._engine.abort()


class _Round(Tasks):
    """The evaluation of one population."""

    def __init__(
        self, dispatcher: Dispatcher, candidates: Candidates, tasks: int, losses: Vector, failures: dict[int, str]
    ) -> None:
        super().__init__(dispatcher)
        self._candidates, self._losses, self._failures = candidates, losses, failures
        count = len(candidates)
        edges = [count * i // tasks for i in range(tasks + 1)]
        self._waiting = deque(Task(first, last) for first, last in pairwise(edges))

    def run(self) -> None:
        self._share()
        while self._waiting or self._under_way:
            self._step(FIRST_COMPLETED if self._waiting else FIRST_EXCEPTION)
            self._raise_first()

    def _part(self, task: Task) -> Any:
        return rows(self._candidates, task.first, task.last)

    def _got(self, task: Task, losses: Vector) -> None:
        self._losses[task.first : task.last] = losses

    def _gave_up(self, candidate: int, reason: str) -> None:
        self._failures[candidate] = reason

    def _share(self) -> None:
        if is_lazy(self._candidates):
            self._shared = self._engine.share(self._candidates)

    def _raise_first(self) -> None:
        """Raise the exception of the first candidate that raised, once all candidates before it are done."""
        if not self._raised:
            return
        first = min(self._raised)
        self._waiting = deque(task for task in self._waiting if task.first < first)
        if not self._waiting and all(task.first > first for task, _ in self._under_way.values()):
            raise self._raised[first]


class QueueLength:
    """How many candidates wait at the workers, so that no worker is idle while the caller handles the last results.

    With a, the time that the caller is away, and d, the time between two results, both as running means: a / d, at
    most one per worker. None wait where the workers would be idle for less than 1% of the time, a < d workers / 100: a
    candidate that waits grows old.
    """

    SHARE, IDLE = 0.1, 0.01  # of a new value in a mean; of the time

    def __init__(self) -> None:
        self._away, self._between = 0.0, math.inf
        self._left: float | None = None

    def came_back(self, now: float) -> None:
        """The caller is back with new candidates."""
        if self._left is not None:
            self._away += self.SHARE * (now - self._left - self._away)

    def left(self, now: float, results: int) -> None:
        """The caller leaves with results."""
        if self._left is not None:
            between = (now - self._left) / results
            known = not math.isinf(self._between)
            self._between = self._between + self.SHARE * (between - self._between) if known else between
        self._left = now

    def length(self, workers: int) -> int:
        if workers < 2 or self._away < self.IDLE * self._between * workers:
            return 0
        return min(workers, math.ceil(self._away / max(self._between, 1e-9)))


class _DispatchStream(Tasks, Stream[Any]):
    """Each candidate is a task of its own, sent as soon as a worker is free."""

    def __init__(self, dispatcher: Dispatcher, objective: Objective) -> None:
        Tasks.__init__(self, dispatcher)
        Stream.__init__(self)
        self._objective = objective
        self._rows: dict[int, tuple[Any, Vector]] = {}  # by the number of the task
        self._done: list[tuple[Any, Any]] = []
        self._number = 0
        self._queue = QueueLength()

    def free(self) -> int:
        return self.workers - self._dispatcher.hanging() + self._queue.length(self.workers) - len(self._rows)

    def put(self, key: Any, candidate: Vector) -> None:
        self._rows[self._number] = key, candidate
        self._waiting.append(Task(self._number, self._number + 1))
        self._number += 1

    def take(self) -> list[tuple[Any, Any]]:
        self.failures = {}
        self._queue.came_back(time.monotonic())
        while not self._done:
            self._step(FIRST_COMPLETED)
            if self._raised:
                raise self._raised[min(self._raised)]
            self.workers = self._engine.workers  # a cluster may grow
        self._send()  # what waits, before the caller leaves
        done, self._done = self._done, []
        self._queue.left(time.monotonic(), len(done))
        return done

    def _part(self, task: Task) -> Any:
        return self._rows[task.first][1][None, :]

    def _got(self, task: Task, losses: Vector) -> None:
        key, _ = self._rows.pop(task.first)
        self._done.append((key, losses[0]))

    def _gave_up(self, candidate: int, reason: str) -> None:
        key, _ = self._rows.pop(candidate)
        self.failures[key] = reason
        self._done.append((key, self._objective.unknown(1)[0]))

    def _share(self) -> None:
        """Each task has its own candidate."""
