"""Asynchronous evaluation against whole populations: `python -m benchmarks.asynchronous real|simulate|figure`.

`real` runs `cones.minimize` on 8 threads that sleep. `simulate` runs the real strategy in simulated time with up to
1000 workers. `figure` draws what `simulate` has recorded in results/asynchronous.

The model of the times: an evaluation takes exp(0.3 z) with z ~ N(0, 1), and one in ten takes ten times as long. Times
do not depend on the candidate. Asking, telling and sending take no time in the simulation. Synchronous: each worker
that is free takes the next candidate of the population, and the next population begins when the last one is done.
"""

from __future__ import annotations

import heapq
import json
import math
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import cones
from cones.incremental import IncrementalStrategy
from cones.plots.colours import COLOURS
from cones.plots.drawing import new_figure, save_figure, style_axis
from cones.plots.labels import label_ends
from cones.types import Vector

__all__ = ["PROBLEMS", "durations", "real", "simulated", "table"]

RECORD = Path("results/asynchronous/simulated.jsonl")
UNIT = 0.025  # seconds of a typical evaluation, in `real`
WORKERS = (8, 32, 100, 316, 1000)
SEEDS = 2


def sphere(x: Vector) -> float:
    return float(x @ x)


def rosenbrock(x: Vector) -> float:
    return float((100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum())


PROBLEMS: dict[str, tuple[Callable[[Vector], float], Vector]] = {
    "Sphere, 50-D": (sphere, np.ones(50)),
    "Rosenbrock, 20-D": (rosenbrock, np.zeros(20)),
}
TARGET, MAXFEV = 1e-6, 400_000


def durations(seed: int) -> Iterator[float]:
    """The times of evaluations, in units of a typical one."""
    rng = np.random.default_rng((seed, 7))
    while True:
        for z, tail in zip(rng.standard_normal(1000), rng.random(1000), strict=True):
            yield math.exp(0.3 * z) * (10.0 if tail < 0.1 else 1.0)


def simulated(problem: str, workers: int, asynchronous: bool, seed: int, popsize: int | None) -> dict[str, Any]:
    """A run in simulated time: evaluations, time to the target, and the share of the time that workers compute."""
    fun, x0 = PROBLEMS[problem]
    settings: dict[str, Any] = {} if popsize is None else {"popsize": popsize}
    es = cones.CoNES(x0, rng=seed, ftarget=TARGET, maxfev=MAXFEV, **settings)
    assert isinstance(es, IncrementalStrategy)
    run = _asynchronous if asynchronous else _synchronous
    now, busy = run(es, fun, workers, durations(seed))
    return {
        "problem": problem, "workers": workers, "asynchronous": asynchronous, "seed": seed, "popsize": es.popsize,
        "evaluations": es.state.evaluations, "time": now, "busy": busy / (workers * now), "best": es.state.best_fun,
    }  # fmt: skip


def _asynchronous(
    es: IncrementalStrategy, fun: Callable[[Vector], float], workers: int, times: Iterator[float]
) -> tuple[float, float]:
    under_way: list[tuple[float, int, Any, float]] = []  # when it ends, a number that breaks ties, who, its loss
    now, busy, number = 0.0, 0.0, 0
    while es.stop() is None:
        while len(under_way) < workers:
            (identity,), X = es.ask_identified(1)
            took = next(times)
            busy += took
            heapq.heappush(under_way, (now + took, number, identity, fun(X[0])))
            number += 1
        now, _, identity, loss = heapq.heappop(under_way)
        es.tell_identified([identity], np.array([loss]))
    return now, busy - sum(end - now for end, *_ in under_way)


def _synchronous(
    es: IncrementalStrategy, fun: Callable[[Vector], float], workers: int, times: Iterator[float]
) -> tuple[float, float]:
    now, busy = 0.0, 0.0
    while es.stop() is None:
        X = np.asarray(es.ask())
        ends = [now] * workers
        for _ in X:
            took = next(times)
            busy += took
            heapq.heapreplace(ends, ends[0] + took)
        now = max(ends)
        es.tell(X, [fun(x) for x in X])
    return now, busy


def simulate() -> None:
    """Record all runs that are not recorded yet."""
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    known = {json.dumps(row["name"]) for row in _rows()}
    for seed, workers, problem in product(range(SEEDS), WORKERS, PROBLEMS):
        for popsize in (workers // 8, workers) if workers > 100 else (None, workers) if workers > 16 else (None,):
            for asynchronous in (True, False):
                name = [problem, workers, asynchronous, seed, popsize]
                if json.dumps(name) not in known:
                    row = {"name": name, **simulated(problem, workers, asynchronous, seed, popsize)}
                    with RECORD.open("a") as file:
                        file.write(json.dumps(row) + "\n")


def _rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RECORD.read_text().splitlines()] if RECORD.exists() else []


def table(rows: list[dict[str, Any]]) -> str:
    """Medians over seeds, asynchronous and synchronous side by side."""
    lines = ["| problem | workers | popsize | evaluations | time | busy |", "| --- | --- | --- | --- | --- | --- |"]
    groups: dict[tuple[Any, ...], dict[bool, list[dict[str, Any]]]] = {}
    for row in rows:
        key = row["problem"], row["workers"], row["popsize"]
        groups.setdefault(key, {True: [], False: []})[row["asynchronous"]].append(row)
    for (problem, workers, _), both in sorted(groups.items()):
        cells = []
        for name, form in (("evaluations", "{:.0f}"), ("time", "{:.0f}"), ("busy", "{:.0%}")):
            values = [float(np.median([_value(row, name) for row in both[kind]])) for kind in (True, False)]
            cells.append(" / ".join("-" if math.isinf(value) else form.format(value) for value in values))
        lines.append(f"| {problem} | {workers} | {both[True][0]['popsize']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _value(row: dict[str, Any], name: str) -> float:
    return float(row[name]) if row["best"] <= TARGET or name == "busy" else math.inf


def figure(out: str = "results/asynchronous/workers.png") -> None:
    """Evaluations, time and busy workers against the number of workers, asynchronous and by whole populations."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator, PercentFormatter

    # Both are CoNES: its colour is that of what is new here, and grey that of what it is compared with.
    kinds = {True: ("asynchronous", COLOURS["CoNES"]), False: ("by populations", "#555555")}
    rows = [row for row in _rows() if row["popsize"] >= row["workers"] // 8]
    drawing = new_figure((3.3 * 3 + 0.9, 2.7 * len(PROBLEMS) + 0.4))
    axes = drawing.subplots(len(PROBLEMS), 3, squeeze=False, sharex=True)
    for line, problem in zip(axes, PROBLEMS, strict=True):
        for axis, name in zip(line, ("evaluations", "time", "busy"), strict=True):
            ends = []
            for (asynchronous, (kind, colour)), large in product(kinds.items(), (False, True)):
                some = [
                    row
                    for row in rows
                    if (row["problem"], row["asynchronous"]) == (problem, asynchronous)
                    and (row["popsize"] == row["workers"]) is large
                ]
                counts = sorted({row["workers"] for row in some})
                medians = [np.median([_value(row, name) for row in some if row["workers"] == w]) for w in counts]
                style = {"linestyle": (0, (4, 2)), "linewidth": 1.0} if large else {"linewidth": 1.6}
                axis.plot(counts, medians, color=colour, marker="o", markersize=2.5, **style)
                if not large:
                    ends.append((float(medians[-1]), kind, colour))
            axis.set_xscale("log")
            title = {"evaluations": "evaluations to 1e-6", "time": "time to 1e-6", "busy": "workers busy"}[name]
            style_axis(axis, f"{problem}: {title}", "workers" if problem == list(PROBLEMS)[-1] else "")
            axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_xticks([10, 100, 1000])
            if name == "busy":
                axis.set_ylim(0.0, 1.05)
                axis.yaxis.set_major_formatter(PercentFormatter(1.0))
                label_ends(axis, ends)
            else:
                axis.set_yscale("log")
                axis.yaxis.set_major_locator(LogLocator(10, (1.0, 2.0, 5.0)))
                axis.yaxis.set_minor_locator(NullLocator())
                axis.yaxis.set_minor_formatter(NullFormatter())
                axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}".replace(",", " ")))
    drawing.suptitle(
        "Medians of up to two seeds; dashed: popsize = workers, else its default, at least workers / 8", fontsize=9
    )
    save_figure(drawing, out)


def real(problems: Iterable[str] = PROBLEMS, workers: int = 8, unit: float = UNIT, seed: int = 0) -> str:
    """`cones.minimize` on threads that sleep: share of the time that they sleep, wall time and evaluations."""
    lines = ["| problem | | evaluations | seconds | busy |", "| --- | --- | --- | --- | --- |"]
    for problem in problems:
        fun, x0 = PROBLEMS[problem]
        rows = {}
        for asynchronous in (True, False):
            times, lock, slept = durations(seed), threading.Lock(), [0.0]

            def slow(x: Vector, times: Any = times, lock: Any = lock, slept: list[float] = slept) -> float:
                with lock:
                    took = unit * next(times)
                begin = time.perf_counter()
                time.sleep(took)
                loss = fun(x)  # noqa: B023 - called within the loop only
                with lock:
                    slept[0] += time.perf_counter() - begin
                return loss

            with ThreadPoolExecutor(workers) as pool:
                begin = time.perf_counter()
                result = cones.minimize(
                    slow, x0, rng=seed, ftarget=TARGET, maxfev=MAXFEV, workers=pool, asynchronous=asynchronous
                )
                seconds, computed = time.perf_counter() - begin, slept[0]
            rows[asynchronous] = result.nfev, seconds, computed / (workers * seconds)
        for asynchronous, (evaluations, seconds, busy) in rows.items():
            name = "asynchronous" if asynchronous else "whole populations"
            lines.append(f"| {problem} | {name} | {evaluations} | {seconds:.1f} | {busy:.1%} |")
        ratios = [one / other for one, other in zip(rows[True], rows[False], strict=True)]
        lines.append(f"| {problem} | ratio | {ratios[0]:.2f} | {ratios[1]:.2f} | {ratios[2]:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    command = sys.argv[1] if len(sys.argv) > 1 else "real"
    if command == "simulate":
        simulate()
        print(table(_rows()))
    elif command == "figure":
        figure()
    elif command == "table":
        print(table(_rows()))
    else:
        print(real(sys.argv[2:] or PROBLEMS))
