"""Run methods on problems, or show what was recorded.

    python -m benchmarks.spaces run --method cones --problems sphere,rosenbrock --size 5 --seeds 10 --budget 50000 DIR
    python -m benchmarks.spaces table DIR          # evaluations to the target, or losses at the end
    python -m benchmarks.spaces tpe DIR            # losses after as many evaluations as TPE had
    python -m benchmarks.spaces pipelines DIR      # pipelines of scikit-learn: --problems svm,boosting,network
    python -m benchmarks.spaces figure DIR FILE    # the same as curves

A record is one line of JSON: method, problem, seed, evaluations to the target (null if it was not reached), the best
loss and the improvements. What is recorded already is not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from contextlib import suppress
from pathlib import Path

from benchmarks.spaces.figure import draw
from benchmarks.spaces.methods import METHODS, Recorder, RunEndedError
from benchmarks.spaces.problems import problem
from benchmarks.spaces.table import beside_tpe, pipelines, records, table

# Improvements that are kept in a record: these and the last.
KEPT = sorted({*range(1, 10), *(int(10 ** (k / 10)) for k in range(10, 61)), 50, 150, 300})  # budgets of TPE included

TABLES = {"table": table, "tpe": beside_tpe, "pipelines": pipelines}


def run(options: argparse.Namespace) -> None:
    folder = Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    known = {(row["method"], row["problem"], row["seed"]) for row in records(folder)}
    for name in options.problems.split(","):
        made = problem(name, options.size)
        for seed in range(options.seeds):
            if (options.method, made.name, seed) in known:
                continue
            recorder, began = Recorder(made, options.budget), time.perf_counter()
            with suppress(RunEndedError):
                METHODS[options.method](recorder, seed)
            row = {
                "method": options.method, "problem": made.name, "seed": seed, "budget": options.budget,
                "hit": recorder.hit, "count": recorder.count, "best": recorder.best,
                "seconds": round(time.perf_counter() - began, 1), "improvements": _thinned(recorder.improvements),
            }  # fmt: skip
            with open(folder / f"{options.method}.jsonl", "a") as file:
                file.write(json.dumps(row) + "\n")


def _thinned(improvements: list[list[float]]) -> list[list[float]]:
    """The best loss after 1, 2, ..., 10, 13, 16, 20, ... evaluations, where it differs from the one before."""
    kept: list[list[float]] = []
    for limit in KEPT:
        before = [pair for pair in improvements if pair[0] <= limit]
        if before and (not kept or kept[-1] != before[-1]):
            kept.append(before[-1])
    return [[count, float(f"{loss:.6g}")] for count, loss in kept]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spaces", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    commands = parser.add_subparsers(required=True)
    runs = commands.add_parser("run")
    runs.add_argument("--method", choices=METHODS, required=True)
    runs.add_argument("--problems", required=True)
    runs.add_argument(
        "--size", type=int, default=0, help="bits, or numbers, integers and categories each; none for a pipeline"
    )
    runs.add_argument("--seeds", type=int, default=10)
    runs.add_argument("--budget", type=int, default=10_000)
    runs.add_argument("folder")
    runs.set_defaults(call=run)
    for name, made in TABLES.items():
        tables = commands.add_parser(name)
        tables.add_argument("folder")
        tables.set_defaults(call=lambda options, made=made: print(made(Path(options.folder))))
    figure = commands.add_parser("figure")
    figure.add_argument("folder")
    figure.add_argument("out")
    figure.set_defaults(call=lambda options: draw(Path(options.folder), Path(options.out)))
    options = parser.parse_args()
    options.call(options)


if __name__ == "__main__":
    main()
