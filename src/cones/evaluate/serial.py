"""Evaluation in this thread."""

from __future__ import annotations

from collections import deque
from typing import Any

from cones.evaluate.candidates import Candidates
from cones.evaluate.evaluator import Evaluator, Objective
from cones.evaluate.stream import Stream
from cones.kernels.buffers import BufferPool
from cones.types import Vector

__all__ = ["SerialEvaluator"]


class SerialEvaluator(Evaluator):
    """Calls the objective itself."""

    def __init__(self, objective: Objective) -> None:
        super().__init__()
        self._objective = objective
        self._pool = BufferPool()

    def losses(self, candidates: Candidates) -> Vector:
        count = len(candidates)
        self.partial = self._objective.unknown(count)
        return self._objective.losses(candidates, 0, count, self.partial, self._pool)

    def stream(self) -> Stream[Any]:
        return _OneAtATime(self._objective)


class _OneAtATime(Stream[Any]):
    """`take` evaluates the candidate that was put in."""

    def __init__(self, objective: Objective) -> None:
        super().__init__()
        self._objective = objective
        self._waiting: deque[tuple[Any, Vector]] = deque()

    def free(self) -> int:
        return 1 - len(self._waiting)

    def put(self, key: Any, candidate: Vector) -> None:
        self._waiting.append((key, candidate))

    def take(self) -> list[tuple[Any, Any]]:
        key, candidate = self._waiting.popleft()
        return [(key, self._objective.losses(candidate[None, :])[0])]
