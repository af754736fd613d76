"""Evaluation by a map-like callable, such as `multiprocessing.Pool.map`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cones.errors import InputError
from cones.evaluate.evaluator import Candidates, Evaluator, Objective, block_of
from cones.noise import Population
from cones.types import Vector

__all__ = ["MapEvaluator"]

Mapper = Callable[[Callable[[Any], float], Iterable[Any]], Iterable[float]]


@dataclass(frozen=True)
class _Row:
    """Evaluates one indexed candidate; a class so that it can be pickled."""

    objective: Objective

    def __call__(self, item: tuple[int, Candidates]) -> float:
        index, candidates = item
        row = block_of(candidates, index, index + 1) if isinstance(candidates, Population) else candidates
        return float(self.objective.losses(row, index)[0])


class MapEvaluator(Evaluator):
    """Calls `mapper(function, candidates)`, one task per candidate."""

    def __init__(self, objective: Objective, mapper: Mapper) -> None:
        self._objective = objective
        self._mapper = mapper

    def losses(self, candidates: Candidates) -> Vector:
        chunked = isinstance(candidates, Population)
        tasks = [
            (index, candidates if chunked else block_of(candidates, index, index + 1))
            for index in range(len(candidates))
        ]
        self.partial = np.full(len(candidates), np.nan)
        count = 0
        for loss in self._mapper(_Row(self._objective), tasks):
            if count < len(tasks):
                self.partial[count] = loss
            count += 1
        if count != len(tasks):
            raise InputError(
                f"workers: expected the map-like callable to return {len(tasks)} losses, got {count} of them"
            )
        return self.partial.copy()
