"""What runs in a worker: some candidates of an objective that the worker has, or is sent."""

from __future__ import annotations

from typing import Any

from cones.errors import StateError
from cones.evaluate.evaluator import Objective
from cones.evaluate.shared import SharedValue
from cones.types import Vector

__all__ = ["install", "run_task"]

_installed: Objective | None = None


def install(objective: Objective) -> None:
    """Run once in each worker process: the objective is sent once, not with every task."""
    global _installed
    _installed = objective


def run_task(objective: Objective | None, candidates: Any, first: int, last: int) -> Vector:
    """The losses of candidates `first` to `last`.

    Args:
        objective: None if it was installed.
        candidates: an array of these rows, or the population they belong to, in shared memory or not.
    """
    objective = objective or _installed
    if objective is None:
        raise StateError("workers: a worker process has no objective")
    if isinstance(candidates, SharedValue):
        candidates = candidates.opened()
    return objective.losses(candidates, first, last)
