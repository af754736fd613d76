"""PyPop7's protocol in 2000 dimensions: `python -m benchmarks.rotated run --methods cones lmcma mmes --seeds 0-2`.

A shifted and rotated ellipsoid (condition 1e6) and Rosenbrock function in the box [-10, 10]^n, a uniform start,
sigma = 20/3, 500 000 evaluations; the best loss at some of them. Every run writes its record as soon as it has ended;
runs that have one are skipped. `python -m benchmarks.rotated table` prints the table.

The rotation is dense and random, but cheap: three times a random sign for every coordinate and an orthonormal cosine
transform. It takes O(n log n) operations instead of n^2.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.fft import dct

from benchmarks.bbob.problems import numbers

DIMENSION, BUDGET, BOX, SIGMA = 2000, 500_000, 10.0, 20.0 / 3.0
POINTS = tuple(int(BUDGET * part) for part in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0))

__all__ = ["FUNCTIONS", "METHODS", "Problem", "table"]


def ellipsoid(Z: np.ndarray) -> np.ndarray:
    return np.asarray((Z * Z) @ 10.0 ** np.linspace(0.0, 6.0, Z.shape[1]))


def rosenbrock(Z: np.ndarray) -> np.ndarray:
    Y = Z + 1.0
    return np.asarray((100.0 * (Y[:, 1:] - Y[:, :-1] ** 2) ** 2 + (Y[:, :-1] - 1.0) ** 2).sum(axis=1))


FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"ellipsoid": ellipsoid, "rosenbrock": rosenbrock}


class Problem:
    """A shifted and rotated function that counts its evaluations and keeps the best loss at `POINTS`."""

    def __init__(self, name: str, seed: int, n: int = DIMENSION, budget: int = BUDGET) -> None:
        rng = np.random.default_rng([seed, len(name)])
        self.base, self.budget = FUNCTIONS[name], budget
        self.shift, self.x0 = rng.uniform(-0.9 * BOX, 0.9 * BOX, n), rng.uniform(-BOX, BOX, n)
        self.signs = rng.choice([-1.0, 1.0], (3, n))
        self.evaluations, self.best, self.seen = 0, np.inf, dict.fromkeys(POINTS, np.inf)

    def rotated(self, X: np.ndarray) -> np.ndarray:
        for signs in self.signs:
            X = dct(X * signs, norm="ortho", axis=-1)
        return X

    def batch(self, X: np.ndarray) -> np.ndarray:
        losses = self.base(self.rotated(np.asarray(X) - self.shift))
        for point in POINTS:
            if self.evaluations < point:
                left = losses[: point - self.evaluations]
                self.seen[point] = min(self.seen[point], float(left.min()))
        self.evaluations += len(losses)
        self.best = min(self.best, float(losses.min()))
        return losses

    def __call__(self, x: np.ndarray) -> float:
        return float(self.batch(np.asarray(x)[None])[0])


def cones(problem: Problem, seed: int, **settings: Any) -> None:
    import cones

    cones.minimize(
        problem.batch,
        problem.x0,
        sigma0=SIGMA,
        maxfev=problem.budget,
        rng=seed,
        vectorized=True,
        noisy=False,
        **settings,
    )


def pypop7(module: str, name: str) -> Callable[[Problem, int], None]:
    def run(problem: Problem, seed: int) -> None:
        import importlib

        optimizer = getattr(importlib.import_module(f"pypop7.optimizers.es.{module}"), name)
        n = problem.x0.size
        edges = {"lower_boundary": np.full(n, -BOX), "upper_boundary": np.full(n, BOX)}
        options = {
            "max_function_evaluations": problem.budget,
            "mean": problem.x0,
            "sigma": SIGMA,
            "seed_rng": seed,
            "verbose": 0,
        }
        optimizer({"fitness_function": problem, "ndim_problem": n, **edges}, options).optimize()

    return run


METHODS: dict[str, Callable[[Problem, int], None]] = {
    "cones": cones,
    "cones-low-rank": lambda problem, seed: cones(problem, seed, belief="low_rank"),
    "lmcma": pypop7("lmcma", "LMCMA"),
    "mmes": pypop7("mmes", "MMES"),
}


def run(folder: Path, methods: list[str], functions: list[str], seeds: list[int]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        for function in functions:
            for method in methods:
                path = folder / f"{function}-{method}-seed-{seed}.json"
                if path.exists():
                    continue
                problem, began = Problem(function, seed), time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    METHODS[method](problem, seed)
                record = {
                    "function": function,
                    "method": method,
                    "seed": seed,
                    "evaluations": problem.evaluations,
                    "best": problem.best,
                    "at": {str(point): loss for point, loss in problem.seen.items()},
                    "seconds": round(time.process_time() - began, 1),
                }
                path.write_text(json.dumps(record) + "\n")
                print(f"{path.stem}: {problem.best:.4g} after {problem.evaluations}, {record['seconds']} s", flush=True)


def table(folder: Path) -> str:
    """The median best loss over the seeds, by function, method and evaluations."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text())
        found.setdefault((record["function"], record["method"]), []).append(record)
    head = ["function", "method", "seeds", *(f"{point:,}" for point in POINTS)]
    rows = [head, ["---"] * len(head)]
    for (function, method), records in found.items():
        medians = [float(np.median([record["at"][str(point)] for record in records])) for point in POINTS]
        rows.append([function, method, str(len(records)), *(f"{loss:.3g}" for loss in medians)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rotated", description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["run", "table"])
    parser.add_argument("--folder", type=Path, default=Path("results/rotated"))
    parser.add_argument("--methods", nargs="+", default=["cones", "lmcma", "mmes"], choices=METHODS)
    parser.add_argument("--functions", nargs="+", default=list(FUNCTIONS), choices=FUNCTIONS)
    parser.add_argument("--seeds", type=numbers, default=[0, 1, 2], metavar="0-2")
    options = parser.parse_args()
    if options.command == "run":
        run(options.folder, options.methods, options.functions, options.seeds)
    else:
        print(table(options.folder))


if __name__ == "__main__":
    main()
