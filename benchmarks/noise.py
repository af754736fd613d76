"""Replicates beside single evaluations: `python -m benchmarks.noise run`, then `python -m benchmarks.noise`.

`run` writes results/noise/runs.jsonl: the loss without noise at the mean after a budget, for each seed, and without
noise the evaluations to 1e-8. The other prints the medians as a table. Noise is normal and new in every evaluation;
runs begin at 3 in every coordinate, Rosenbrock's at 0, with a spread of 1, and do not restart.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import cones
from benchmarks.lines import run_missing
from cones.problems import Ellipsoid, Problem, Rosenbrock, Sphere
from cones.types import Matrix, Vector

__all__ = ["RECORDS", "record", "table"]

RECORDS = Path(__file__).parents[1] / "results" / "noise" / "runs.jsonl"
PROBLEMS: dict[str, tuple[type[Problem], float]] = {
    "Sphere": (Sphere, 3.0),
    "Ellipsoid": (Ellipsoid, 3.0),
    "Rosenbrock": (Rosenbrock, 0.0),
}
BUDGETS = {10: 10_000, 100: 30_000}
LEVELS = {10: (0.0, 0.01, 1.0), 100: (0.0, 1.0)}
SEEDS = 3
MORE_SEEDS = {("Ellipsoid", 100, 0.0): 20}  # its evaluations vary by a factor of two between seeds
TARGET = 1e-8


def record(name: str, dim: int, noise: float, replicates: bool, seed: int, maxfev: int) -> dict[str, Any]:
    """One run: the true loss at its mean, its evaluations, and how often candidates were evaluated on average."""
    make, start = PROBLEMS[name]
    problem, rng = make(dim), np.random.default_rng((seed, 1))

    def fun(X: Matrix) -> Vector:
        return problem.losses(X) + noise * rng.standard_normal(len(X))

    result = cones.minimize(
        fun,
        np.full(dim, start),
        sigma0=1.0,
        vectorized=True,
        maxfev=maxfev,
        ftarget=None if noise else TARGET,
        rng=seed,
        noisy=True if noise else None,
        replicates="auto" if replicates else None,
        restarts=0,
    )
    history = result.history
    times = float(history["replicates"].mean()) if replicates else 1.0
    loss = float(problem.losses(result.mean[None, :])[0])
    return {
        "problem": name, "dim": dim, "noise": noise, "replicates": replicates, "seed": seed, "loss": loss,
        "nfev": int(result.nfev), "times": times, "reached": result.stop == "ftarget",
    }  # fmt: skip


def table(path: Path = RECORDS) -> str:
    """The medians over seeds as Markdown."""
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    lines = ['| | noise | single evaluations | `replicates="auto"` | ratio |', "| --- | --- | --- | --- | --- |"]
    for name, dim, noise in dict.fromkeys((run["problem"], run["dim"], run["noise"]) for run in runs):
        same = [run for run in runs if (run["problem"], run["dim"], run["noise"]) == (name, dim, noise)]
        by = {switch: [run for run in same if run["replicates"] is switch] for switch in (False, True)}
        to_target = not noise and all(run["reached"] for run in same)
        key, unit = ("nfev", " evaluations") if to_target else ("loss", "")
        plain, auto = (float(np.median([run[key] for run in by[switch]])) for switch in (False, True))
        cells = [f"{value:.0f}{unit}" if to_target else f"{value:.2g}" for value in (plain, auto)]
        lines.append(f"| {name}, {dim}-D | {noise:g} | {cells[0]} | {cells[1]} | {auto / plain:.2f} |")
    return "\n".join(lines)


def _run() -> None:
    cases = (
        (name, dim, noise, replicates, seed)
        for dim in BUDGETS
        for name in PROBLEMS
        for noise in LEVELS[dim]
        for replicates in (False, True)
        for seed in range(MORE_SEEDS.get((name, dim, noise), SEEDS))
    )
    keys = ("problem", "dim", "noise", "replicates", "seed")

    def made(name: str, dim: int, noise: float, replicates: bool, seed: int) -> dict[str, Any]:
        return record(name, dim, noise, replicates, seed, BUDGETS[dim])

    run_missing(RECORDS, keys, cases, made)


if __name__ == "__main__":
    if sys.argv[1:] == ["run"]:
        _run()
    print(table())
