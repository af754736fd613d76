"""Evaluation in this thread, one candidate after the other or all at once."""

from __future__ import annotations

import numpy as np

from cones.evaluate.evaluator import Candidates, Evaluator, Objective
from cones.kernels.buffers import BufferPool
from cones.sampling import Population
from cones.types import Vector

__all__ = ["SerialEvaluator"]


class SerialEvaluator(Evaluator):
    """Calls the objective itself."""

    def __init__(self, objective: Objective) -> None:
        super().__init__()
        self._objective = objective
        self._pool = BufferPool()

    def losses(self, candidates: Candidates) -> Vector:
        self.partial = losses = np.full(len(candidates), np.nan)
        if isinstance(candidates, Population):
            return self._objective.losses_of(candidates, 0, len(candidates), losses, self._pool)
        return self._objective.losses(candidates, 0, out=losses)
