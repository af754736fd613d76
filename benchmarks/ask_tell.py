"""Time of an iteration without evaluations, against the time of drawing its noise."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

import cones
from benchmarks.measure import side_by_side, table, verdict
from cones.sampling import NoiseStream

TITLE = "ask + tell, n = 5000, 100 candidates, float64, diagonal belief"
DIM, POPSIZE, ROUNDS = 5000, 100, 400
OVER_ES, OVER_NOISE = 1.10, 1.40


def iteration(es: cones.Strategy) -> Callable[[], None]:
    """One ask and one tell, with losses given in advance."""
    losses = np.random.default_rng(0).standard_normal(POPSIZE)

    def call() -> None:
        es.tell(es.ask(), losses)

    return call


def drawing(threads: str) -> Callable[[], None]:
    """Draw the noise of one iteration, in one thread or in all."""
    noise, count = NoiseStream(0), iter(range(10**9))

    def call() -> None:
        before = os.environ.get("OMP_NUM_THREADS")
        os.environ["OMP_NUM_THREADS"] = threads
        noise.draw(next(count), DIM, 0, POPSIZE // 2)
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before

    return call


def run() -> str:
    start = np.zeros(DIM)
    common: dict[str, Any] = {"popsize": POPSIZE, "rng": 0}
    strategies = [
        cones.ES(start, 1.0, **common),
        cones.NES(start, 1.0, **common),
        cones.CoNES(start, 1.0, radius="paper", **common),
        cones.CoNES(start, 1.0, antithetic=True, **common),
    ]
    calls = [drawing("1"), drawing("9999"), *map(iteration, strategies)]
    one, many, es, nes, cones_, adaptive = side_by_side(calls, ROUNDS)
    rows = [
        ["noise, one thread", f"{1e3 * one:.2f}", "1.00", "-", "-"],
        ["noise, all cores", f"{1e3 * many:.2f}", f"{many / one:.2f}", "-", "-"],
        ["ES", f"{1e3 * es:.2f}", f"{es / one:.2f}", "1.00", "-"],
        ["NES", f"{1e3 * nes:.2f}", f"{nes / one:.2f}", f"{nes / es:.2f}", "-"],
        [
            "CoNES, the paper's ball and Adam",
            f"{1e3 * cones_:.2f}",
            f"{cones_ / one:.2f}",
            f"{cones_ / es:.2f}",
            verdict(cones_ / es <= OVER_ES and cones_ / one <= OVER_NOISE),
        ],
        [
            "CoNES, adaptive radii, in pairs",
            f"{1e3 * adaptive:.2f}",
            f"{adaptive / one:.2f}",
            f"{adaptive / es:.2f}",
            "-",
        ],
    ]
    head = ("what", "ms", "over noise, one thread", "over ES", "target")
    return table(TITLE, head, rows) + (
        f"\nTargets: CoNES at most {OVER_ES:.2f}x the time of ES and at most {OVER_NOISE:.2f}x that of drawing its "
        "noise in one thread.\n"
    )
