"""Evaluation in this thread, one candidate after the other or all at once."""

from __future__ import annotations

from dataclasses import dataclass

from cones.evaluate.evaluator import Evaluator, Objective
from cones.types import Matrix, Vector

__all__ = ["SerialEvaluator"]


@dataclass(frozen=True)
class SerialEvaluator(Evaluator):
    objective: Objective

    def losses(self, candidates: Matrix) -> Vector:
        return self.objective.losses(candidates, 0)
