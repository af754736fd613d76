"""Evaluation by a map-like callable, such as `multiprocessing.Pool.map`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from cones.errors import InputError
from cones.evaluate.candidates import Candidates, rows
from cones.evaluate.evaluator import Evaluator, Objective
from cones.types import Matrix, Vector

__all__ = ["MapEvaluator"]

Mapper = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


@dataclass(frozen=True)
class _Row:
    """Evaluates one indexed candidate; a class so that it can be pickled."""

    objective: Objective

    def __call__(self, item: tuple[int, Matrix]) -> Any:
        index, row = item
        return self.objective.losses(row, index)[0]


class MapEvaluator(Evaluator):
    """Calls `mapper(function, candidates)`, one task per candidate."""

    def __init__(self, objective: Objective, mapper: Mapper) -> None:
        super().__init__()
        self._objective = objective
        self._mapper = mapper

    def losses(self, candidates: Candidates) -> Vector:
        expected = len(candidates)
        tasks = ((k, rows(candidates, k, k + 1)) for k in range(expected))
        self.partial = self._objective.unknown(expected)
        count = 0
        losses = self._mapper(_Row(self._objective), tasks)
        if not isinstance(losses, Iterable):
            raise InputError(f"workers: expected the map-like callable to return losses, got {type(losses).__name__}")
        for loss in losses:
            if count < expected:
                self.partial[count] = loss
            count += 1
        if count != expected:
            raise InputError(f"workers: expected the map-like callable to return {expected} losses, got {count}")
        return self.partial.copy()
