"""Asynchronous training on Swimmer: `python -m benchmarks.asynchronous_training run`, then without `run` the table.

Eight workers in simulated time: the training, the episodes and the returns are real, and an episode takes the time of
the model in `benchmarks.asynchronous` (log-normal, one in ten takes ten times as long). So a machine with two cores can
carry eight workers. The radii are adaptive. The mean policy is evaluated every 2 iterations in 2 episodes on the same
workers; that time counts. `run` writes results/asynchronous/swimmer.jsonl.
"""

from __future__ import annotations

import heapq
import json
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.asynchronous import durations
from benchmarks.lines import run_missing
from cones import rl
from cones.evaluate import Candidates, Evaluator, Objective, Stream
from cones.types import Vector

__all__ = ["RECORDS", "SimulatedWorkers", "record", "table"]

RECORDS = Path(__file__).parents[1] / "results" / "asynchronous" / "swimmer.jsonl"
TASK, TARGET, TIMESTEPS, WORKERS, SEEDS = "Swimmer-v4", 340.0, 2e6, 8, 3
SETTINGS: dict[str, Any] = {"radius": "adaptive", "evaluate_every": 2, "evaluation_episodes": 2}


class Clock:
    """Simulated time, when each worker is free, and how long they have worked."""

    def __init__(self, workers: int, seed: int) -> None:
        self.now, self.busy = 0.0, 0.0
        self.free = [0.0] * workers
        self._durations: Iterator[float] = durations(seed)

    def begin(self) -> float:
        """Begin an evaluation on the worker that is free first. Returns when it ends."""
        took = next(self._durations)
        self.busy += took
        end = max(self.now, self.free[0]) + took
        heapq.heapreplace(self.free, end)
        return end


class SimulatedWorkers(Evaluator):
    """Workers in simulated time: each evaluation is done at once, and its result arrives when it would."""

    def __init__(self, objective: Objective, clock: Clock) -> None:
        super().__init__(objective)
        self._episode, self._clock = objective, clock

    def losses(self, candidates: Candidates) -> Vector:
        self._clock.now = max([self._clock.begin() for _ in range(len(candidates))])
        return self._episode.losses(candidates)

    def stream(self) -> Stream[Any]:
        return _SimulatedStream(self._episode, self._clock)


class _SimulatedStream(Stream[Any]):
    def __init__(self, objective: Objective, clock: Clock) -> None:
        super().__init__()
        self._objective, self._clock = objective, clock
        self._under_way: list[tuple[float, int, Any, Any]] = []
        self._number = 0  # breaks ties

    def free(self) -> int:
        return len(self._clock.free) - len(self._under_way)

    def put(self, key: Any, candidate: Vector) -> None:
        loss = self._objective.losses(candidate[None, :])[0]
        heapq.heappush(self._under_way, (self._clock.begin(), self._number, key, loss))
        self._number += 1

    def take(self) -> list[tuple[Any, Any]]:
        end, _, key, loss = heapq.heappop(self._under_way)
        self._clock.now = max(self._clock.now, end)
        return [(key, loss)]


def record(asynchronous: bool, seed: int, timesteps: float = TIMESTEPS, task: str = TASK) -> dict[str, Any]:
    """One run up to the target: time, timesteps, and the share of the time that workers were busy."""
    clock, times = Clock(WORKERS, seed), {}

    class Workers(SimulatedWorkers):
        def __init__(self, objective: Objective) -> None:
            super().__init__(objective, clock)

    def note(training: Any) -> None:
        times[training.timesteps] = clock.now, clock.busy - sum(max(0.0, end - clock.now) for end in clock.free)
        if training.last("mean_reward") >= TARGET:
            raise StopIteration

    trained = rl.train(
        task, timesteps=timesteps, rng=seed, workers=Workers, asynchronous=asynchronous, callback=note, **SETTINGS
    )
    seconds, busy = times[trained.timesteps]
    return {
        "asynchronous": asynchronous, "seed": seed, "reached": bool(trained.reward >= TARGET),
        "timesteps": trained.timesteps, "time": round(seconds, 1), "busy": round(busy / (WORKERS * seconds), 4),
        "iterations": len(trained.history["timesteps"]), "reward": round(trained.reward, 1),
    }  # fmt: skip


def table(path: Path = RECORDS) -> str:
    """Medians over seeds as Markdown; a run that has not reached the target counts as infinite."""
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    lines = [f"| {TASK} to {TARGET:g} | timesteps | time | busy |", "| --- | --- | --- | --- |"]
    medians = []
    for asynchronous in (True, False):
        some = [run for run in runs if run["asynchronous"] is asynchronous]
        values = [float(np.median([r[n] if r["reached"] else np.inf for r in some])) for n in ("timesteps", "time")]
        busy = float(np.median([run["busy"] for run in some]))
        medians.append(values)
        name = "asynchronous" if asynchronous else "whole populations"
        lines.append(f"| {name} | {values[0]:.3g} | {values[1]:.0f} | {busy:.1%} |")
    ratios = [one / other for one, other in zip(*medians, strict=True)]
    return "\n".join([*lines, f"| ratio | {ratios[0]:.2f} | {ratios[1]:.2f} | |"])


def _run() -> None:
    run_missing(RECORDS, ("asynchronous", "seed"), product((True, False), range(SEEDS)), record)


if __name__ == "__main__":
    if sys.argv[1:] == ["run"]:
        _run()
    print(table())
