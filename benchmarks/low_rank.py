"""Time of an iteration with a low-rank covariance, against that of a diagonal one."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import cones
from benchmarks.ask_tell import iteration
from benchmarks.measure import side_by_side, table, verdict

TITLE = "ask + tell with a low-rank covariance, n = 100 000, 100 candidates, float64"
DIM, POPSIZE, RANK, ROUNDS = 100_000, 100, 20, 12
LIMIT = 3.0


def run() -> str:
    start = np.zeros(DIM)
    common: dict[str, Any] = {"popsize": POPSIZE, "rng": 0}
    diagonal = cones.CoNES(start, 1.0, belief="diagonal", **common)
    # A threshold of 0 learns axes from the first iteration on.
    axes = cones.CoNES(start, 1.0, belief="low_rank", rank=RANK, step="low_rank,threshold=0", **common)
    calls = [iteration(diagonal), iteration(axes)]
    while axes.state.belief.values.size < RANK:  # type: ignore[attr-defined]
        calls[1]()
    clocks = {"wall time": time.perf_counter, "CPU time": time.process_time}
    rows = []
    for name, clock in clocks.items():
        first, second = side_by_side(calls, ROUNDS, clock)
        ratio = second / first
        rows.append([name, f"{1e3 * first:.0f}", f"{1e3 * second:.0f}", f"{ratio:.2f}", verdict(ratio <= LIMIT)])
    return table(TITLE, ("clock", "diagonal, ms", f"{RANK} axes, ms", "ratio", "target"), rows) + (
        f"\nTarget: {RANK} axes take at most {LIMIT:.0f}x the time of the diagonal. The least of {ROUNDS} rounds, in "
        "which both take turns. Evaluations are not timed.\n"
    )
