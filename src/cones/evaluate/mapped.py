"""Evaluation by a map-like callable, such as `multiprocessing.Pool.map`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cones.errors import InputError
from cones.evaluate.evaluator import Evaluator, Objective
from cones.types import Matrix, Vector

__all__ = ["MapEvaluator"]


@dataclass(frozen=True)
class _Row:
    """Evaluates one indexed candidate; a class so that it can be pickled."""

    objective: Objective

    def __call__(self, item: tuple[int, Matrix]) -> float:
        index, row = item
        return float(self.objective.losses(row, index)[0])


@dataclass(frozen=True)
class MapEvaluator(Evaluator):
    """Calls `mapper(function, candidates)`, one task per candidate."""

    objective: Objective
    mapper: Callable[[Callable[[Any], float], Iterable[Any]], Iterable[float]]

    def losses(self, candidates: Matrix) -> Vector:
        tasks = [(index, candidates[index : index + 1]) for index in range(len(candidates))]
        losses = np.array(list(self.mapper(_Row(self.objective), tasks)), dtype=np.float64)
        if losses.shape != (len(candidates),):
            raise InputError(
                f"workers: expected the map-like callable to return {len(candidates)} losses, got shape {losses.shape}"
            )
        return losses
