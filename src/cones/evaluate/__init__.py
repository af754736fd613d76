"""Evaluators: how a population's losses are computed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

from cones.checks import check_integer
from cones.errors import InputError
from cones.evaluate.evaluator import Evaluator, Objective
from cones.evaluate.executor import ExecutorEvaluator, ProcessEvaluator
from cones.evaluate.mapped import MapEvaluator
from cones.evaluate.serial import SerialEvaluator
from cones.threads import core_count

__all__ = [
    "Evaluator",
    "ExecutorEvaluator",
    "MapEvaluator",
    "Objective",
    "ProcessEvaluator",
    "SerialEvaluator",
    "Workers",
    "evaluator_from",
]

Workers = int | Executor | Callable[..., Any]


def evaluator_from(objective: Objective, workers: Workers) -> Evaluator:
    """An evaluator for what users pass as `workers`, as in SciPy.

    1 evaluates in this thread, an integer k > 1 in k processes, -1 in one process per core; a
    map-like callable or a `concurrent.futures.Executor` is used as it is.
    """
    if not callable(objective.fun):
        raise InputError(f"fun: expected a callable, got {type(objective.fun).__name__}")
    if isinstance(workers, Executor):
        return ExecutorEvaluator(objective, workers)
    if callable(workers):
        return MapEvaluator(objective, workers)
    count = check_integer("workers", workers, -1)
    if count == 0:
        raise InputError("workers: expected a positive integer, -1 for all cores, a map or an Executor, got 0")
    if count == -1:
        count = core_count()
    return SerialEvaluator(objective) if count == 1 else ProcessEvaluator(objective, count)
