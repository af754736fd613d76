"""Evaluation in this thread, one candidate after the other or all at once."""

from __future__ import annotations

import numpy as np

from cones.evaluate.evaluator import Evaluator, Objective
from cones.types import Matrix, Vector

__all__ = ["SerialEvaluator"]


class SerialEvaluator(Evaluator):
    """Calls the objective itself."""

    def __init__(self, objective: Objective) -> None:
        self._objective = objective

    def losses(self, candidates: Matrix) -> Vector:
        self.partial = np.full(len(candidates), np.nan)
        return self._objective.losses(candidates, 0, out=self.partial)
