"""Evaluation in this thread."""

from __future__ import annotations

from cones.evaluate.candidates import Candidates
from cones.evaluate.evaluator import Evaluator, Objective
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
