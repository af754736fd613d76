"""Evaluation by a map-like callable, such as `multiprocessing.Pool.map`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cones.errors import InputError
from cones.evaluate.evaluator import Candidates, Evaluator, Objective
from cones.sampling import Population
from cones.types import Matrix, Vector

__all__ = ["MapEvaluator"]

Mapper = Callable[[Callable[[Any], float], Iterable[Any]], Iterable[float]]


@dataclass(frozen=True)
class _Row:
    """Evaluates one indexed candidate; a class so that it can be pickled."""

    objective: Objective

    def __call__(self, item: tuple[int, Matrix]) -> float:
        index, row = item
        return float(self.objective.losses(row, index)[0])


class MapEvaluator(Evaluator):
    """Calls `mapper(function, candidates)`, one task per candidate."""

    def __init__(self, objective: Objective, mapper: Mapper) -> None:
        super().__init__()
        self._objective = objective
        self._mapper = mapper

    def losses(self, candidates: Candidates) -> Vector:
        tasks = (
            (k, candidates.block(k, k + 1) if isinstance(candidates, Population) else candidates[k : k + 1])
            for k in range(len(candidates))
        )
        self.partial = np.full(len(candidates), np.nan)
        count = 0
        losses = self._mapper(_Row(self._objective), tasks)
        if not isinstance(losses, Iterable):
            raise InputError(f"workers: expected the map-like callable to return losses, got {type(losses).__name__}")
        for loss in losses:
            if count < len(candidates):
                self.partial[count] = loss
            count += 1
        if count != len(candidates):
            raise InputError(
                f"workers: expected the map-like callable to return {len(candidates)} losses, got {count} of them"
            )
        return self.partial.copy()
