"""Evaluation in this thread, one candidate after the other or all at once."""

from __future__ import annotations

import numpy as np

from cones.evaluate.evaluator import Candidates, Evaluator, Objective, block_of
from cones.noise import Population
from cones.types import Vector

__all__ = ["SerialEvaluator"]


class SerialEvaluator(Evaluator):
    """Calls the objective itself."""

    def __init__(self, objective: Objective) -> None:
        self._objective = objective

    def losses(self, candidates: Candidates) -> Vector:
        self.partial = losses = np.full(len(candidates), np.nan)
        size = candidates.chunk_size if isinstance(candidates, Population) else len(candidates)
        for first in range(0, len(candidates), size):
            last = min(first + size, len(candidates))
            losses[first:last] = self._objective.losses(block_of(candidates, first, last), first, losses[first:last])
        return losses
