"""COCO's bbob-mixint beside CatCMA with margin.

    python -m benchmarks.spaces.mixint run cones 5 1-3 1000 DIR      # dimension, instances, evaluations per dimension
    python -m benchmarks.spaces.mixint table DIR

A record is one line of JSON per problem: the evaluations at which each of 51 targets, from 100 to 1e-8 above the
minimum, was first reached; null where it was not. The area is that under the runtime distribution, over the logarithm
of the evaluations.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import cones
from benchmarks.bbob.problems import numbers, optimal_value
from benchmarks.spaces.methods import RunEndedError

__all__ = ["hits_on", "table"]

TARGETS = 10.0 ** np.linspace(2, -8, 51)


def hits_on(problem: Any, method: str, budget: int) -> list[int | None]:
    """Run a method; the evaluations at which targets were reached."""
    best, count = np.inf, 0
    hits: list[int | None] = [None] * len(TARGETS)
    optimum, whole = optimal_value(problem), problem.number_of_integer_variables
    low, high = problem.lower_bounds, problem.upper_bounds

    def loss(x: np.ndarray) -> float:
        nonlocal best, count
        value, count = float(problem(x)), count + 1
        if value < best:
            best = value
            for k in np.flatnonzero(value - optimum <= TARGETS):
                hits[k] = hits[k] or count
        if count >= budget or hits[-1]:
            raise RunEndedError
        return value

    with suppress(RunEndedError):
        if method == "cones":
            space = cones.Space(z=cones.Integer(low[:whole], high[:whole]), x=cones.Float(low[whole:], high[whole:]))
            seed, most = problem.id_instance, budget + 1000
            cones.minimize(lambda v: loss(np.r_[v["z"], v["x"]]), space, rng=seed, maxfev=most, noisy=False)
        else:
            _catcma(loss, whole, low, high, problem.id_instance)
    return hits


def _catcma(loss: Any, whole: int, low: Any, high: Any, seed: int) -> None:
    from cmaes import CatCMAwM

    warnings.simplefilter("ignore")
    while True:
        optimizer = CatCMAwM(
            x_space=[[a, b] for a, b in zip(low[whole:], high[whole:], strict=True)],
            z_space=[list(range(int(a), int(b) + 1)) for a, b in zip(low[:whole], high[:whole], strict=True)],
            seed=seed,
        )
        seed += 1000
        while not optimizer.should_stop():
            asked = [optimizer.ask() for _ in range(optimizer.population_size)]
            optimizer.tell([(one, loss(np.r_[one.z, one.x])) for one in asked])


def table(folder: Path) -> str:
    """Area and share of targets, by method and dimension."""
    by: dict[tuple[int, str], list[tuple[float, float]]] = defaultdict(list)
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text().splitlines():
            row = json.loads(line)
            logs = np.array([1.0 if hit is None else np.log(hit) / np.log(row["budget"]) for hit in row["hits"]])
            share = np.mean([hit is not None for hit in row["hits"]])
            by[row["dim"], row["method"]].append((float((1.0 - logs).mean()), float(share)))
    lines = ["| | problems | area | share of targets |", "| --- | --- | --- | --- |"]
    for (dim, method), rows in sorted(by.items(), key=lambda pair: (pair[0][0], pair[0][1] != "cones")):
        area, share = np.mean(rows, axis=0)
        lines.append(f"| {dim}-D, {method} | {len(rows)} | {area:.3f} | {share:.3f} |")
    return "\n".join(lines)


def run(method: str, dim: int, instances: str, per_dimension: int, folder: Path) -> None:
    import cocoex

    folder.mkdir(parents=True, exist_ok=True)
    which = ",".join(map(str, numbers(instances)))
    suite = cocoex.Suite("bbob-mixint", "", f"dimensions:{dim} instance_indices:{which}")
    with open(folder / f"{method}.jsonl", "a") as file:
        for problem in suite:
            hits = hits_on(problem, method, per_dimension * dim)
            row = {
                "method": method, "dim": dim, "function": problem.id_function, "instance": problem.id_instance,
                "budget": per_dimension * dim, "hits": hits,
            }  # fmt: skip
            file.write(json.dumps(row) + "\n")
            file.flush()


if __name__ == "__main__":
    if sys.argv[1] == "table":
        print(table(Path(sys.argv[2])))
    else:
        run(sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]), Path(sys.argv[6]))
