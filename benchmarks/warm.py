"""Warm starts beside cold ones: `python -m benchmarks.warm run`, then `python -m benchmarks.warm`.

`run` writes results/warm/runs.jsonl: evaluations to a target in 100 dimensions. The minimum is at 0.7 in every
coordinate, and the known evaluations are 1000 points of N(0, I). A cold run begins at 0 with a spread of 1. "similar":
the known losses are those of the same function with its minimum at 0.6, and `sigma0` is 0.1.
"""

from __future__ import annotations

import json
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import cones
from benchmarks.lines import run_missing
from cones.problems import Ackley, Ellipsoid, Problem, Rosenbrock, Shifted, Sphere

__all__ = ["RECORDS", "record", "table"]

RECORDS = Path(__file__).parents[1] / "results" / "warm" / "runs.jsonl"
DIM, POINTS, SEEDS, MAXFEV = 100, 1000, 3, 100_000
# The target; Rosenbrock's is reached on the way to its valley.
PROBLEMS: dict[str, tuple[type[Problem], float]] = {
    "Sphere": (Sphere, 1e-6),
    "Ellipsoid": (Ellipsoid, 1.0),
    "Ackley": (Ackley, 1e-3),
    "Rosenbrock": (Rosenbrock, 100.0),
}
STARTS = ("cold", "warm", "similar")


def record(name: str, start: str, seed: int, dim: int = DIM, points: int = POINTS) -> dict[str, Any]:
    """One run: its evaluations, and whether it has reached the target."""
    make, target = PROBLEMS[name]
    minimum = 0.7 - make(dim).optimum[0]  # where `Shifted` puts the minimum at 0.7
    problem = Shifted(make(dim), minimum)
    if start == "cold":
        begin: dict[str, Any] = {"x0": np.zeros(dim), "sigma0": 1.0}
    else:
        known = np.random.default_rng((seed, 2)).standard_normal((points, dim))
        losses = (problem if start == "warm" else Shifted(make(dim), minimum - 0.1)).losses(known)
        begin = {"initial": (known, losses), "sigma0": None if start == "warm" else 0.1}
    result = cones.minimize(
        problem.losses, **begin, vectorized=True, maxfev=MAXFEV, ftarget=target, rng=seed, restarts=0
    )
    reached = bool(result.stop == "ftarget")
    return {"problem": name, "start": start, "seed": seed, "nfev": int(result.nfev), "reached": reached}


def table(path: Path = RECORDS) -> str:
    """The medians over seeds as Markdown."""
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    lines = [
        "| 100-D, to | cold | 1000 known evaluations | ratio | of a similar function | ratio |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name in dict.fromkeys(run["problem"] for run in runs):
        medians = []
        for start in STARTS:
            same = [run for run in runs if (run["problem"], run["start"]) == (name, start)]
            medians.append(float(np.median([run["nfev"] if run["reached"] else np.inf for run in same])))
        cold, warm, similar = medians
        cells = [f"{cold:.0f}", f"{warm:.0f}", f"{warm / cold:.2g}", f"{similar:.0f}", f"{similar / cold:.2g}"]
        lines.append(f"| {name}, {PROBLEMS[name][1]:g} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _run() -> None:
    run_missing(RECORDS, ("problem", "start", "seed"), product(PROBLEMS, STARTS, range(SEEDS)), record)


if __name__ == "__main__":
    if sys.argv[1:] == ["run"]:
        _run()
    print(table())
