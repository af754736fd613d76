"""Problems of COCO, their optimal values, and the start that all methods share."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bbob.targets import Counted

__all__ = ["SIGMA0", "SUITES", "Task", "coco_problem", "numbers", "optimal_value", "start"]

SUITES = {
    "bbob": (2, 3, 5, 10, 20, 40),
    "bbob-largescale": (20, 40, 80, 160, 320, 640),
    "bbob-constrained": (2, 3, 5, 10, 20, 40),
}
SIGMA0 = 2.0
Vector = NDArray[np.float64]


@dataclass
class Task:
    """What a method gets: the function, a start, the budget and a seed."""

    fun: Counted
    x0: Vector
    sigma0: float
    seed: int

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng([self.seed, 1])
        self._started = False

    def point(self) -> Vector:
        """The start: x0 at the first call, then fresh uniform points in [-4, 4]^n for restarts."""
        if not self._started:
            self._started = True
            return self.x0.copy()
        return self._rng.uniform(-4, 4, self.x0.size)


def start(dimension: int, function: int, instance: int) -> tuple[Vector, int]:
    """The initial candidate, uniform in [-4, 4]^n, and a positive seed for the method."""
    rng = np.random.default_rng([dimension, function, instance])
    return rng.uniform(-4, 4, dimension), int(rng.integers(1, 2**31))


@contextmanager
def coco_problem(suite: str, dimension: int, function: int, instance: int) -> Iterator[Any]:
    """One problem of COCO, freed at the end."""
    import cocoex

    cocoex.log_level("warning")
    problems = cocoex.Suite(suite, f"instances:{instance}", f"dimensions:{dimension} function_indices:{function}")
    problem = problems.get_problem(0)  # iterating over the suite would free it
    try:
        yield problem
    finally:
        problem.free()


def optimal_value(problem: Any) -> float:
    """The least value of a problem. COCO writes the minimizer to a file in the working directory."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        problem._best_parameter("print")
        text = Path("._bbob_problem_best_parameter.txt").read_text()
    return float(problem(np.array(text.split(), dtype=float)))


def numbers(text: str) -> list[int]:
    """Numbers and ranges: "1,3,8-10" is [1, 3, 8, 9, 10]."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found
