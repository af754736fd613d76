"""The overhead of a small problem: ask + tell in 10 dimensions against PyCMA."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import cones
from benchmarks.measure import table, verdict

TITLE = "Small problems, n = 10, default populations: ask + tell over 200 iterations of Sphere"
DIM, ITERATIONS, REPEATS = 10, 200, 15
LIMIT = 1.0


def sphere(x: np.ndarray) -> float:
    return float(x @ x)


def pycma() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cma warns if matplotlib is missing
        import cma
    return cma.CMAEvolutionStrategy(np.full(DIM, 3.0), 1.0, {"verbose": -9, "seed": 1})


def microseconds(make: Callable[[], Any]) -> float:
    """CPU time of one ask and one tell, the mean over a run. In 10 dimensions nothing uses a second thread."""
    es, total = make(), 0.0
    for _ in range(ITERATIONS):
        begin = time.thread_time()
        X = es.ask()
        asked = time.thread_time()
        losses = [sphere(x) for x in X]
        told = time.thread_time()
        es.tell(X, losses)
        total += asked - begin + time.thread_time() - told
    return 1e6 * total / ITERATIONS


def run() -> str:
    ours: dict[str, Callable[[], Any]] = {
        "CoNES, the default": partial(cones.CoNES, [3.0] * DIM, rng=0),
        "CoNES, diagonal": partial(cones.CoNES, [3.0] * DIM, belief="diagonal", rng=0),
        "CoNES, the paper's ball and Adam": partial(cones.CoNES, [3.0] * DIM, radius="paper", rng=0),
    }
    makers = [pycma, *ours.values()]
    repeats = [[microseconds(make) for make in makers] for _ in range(1 + REPEATS)]
    baseline, *others = (statistics.median(column[1:]) for column in zip(*repeats, strict=True))  # the first warms up
    popsizes = [make().popsize for make in makers]
    rows = [["PyCMA", str(popsizes[0]), f"{baseline:.0f}", "1.00", "-"]]
    for name, popsize, value in zip(ours, popsizes[1:], others, strict=True):
        target = verdict(value <= LIMIT * baseline) if len(rows) == 1 else "-"
        rows.append([name, str(popsize), f"{value:.0f}", f"{value / baseline:.2f}", target])
    return table(TITLE, ("method", "candidates", "CPU microseconds per iteration", "over PyCMA", "target"), rows) + (
        f"\nTarget: the default takes at most {LIMIT:.2f} of PyCMA's time. The median of {REPEATS} "
        "runs, which take turns; evaluations are not timed.\n"
    )
