"""Early ends in training: `python -m benchmarks.early_ends run`, then `python -m benchmarks.early_ends`.

`run` trains a policy on three tasks with and without `early_end` and writes
results/early-ends/runs.jsonl: the rewards of the mean policy and the timesteps of training. The same seeds begin with
the same candidates. The targets are intermediate ones: Hopper's solved level takes ten times the budget.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.lines import run_missing
from cones import rl

__all__ = ["RECORDS", "record", "table"]

RECORDS = Path(__file__).parents[1] / "results" / "early-ends" / "runs.jsonl"
SEEDS = 3
# Task: the budget of timesteps, the targets.
TASKS: dict[str, tuple[float, tuple[float, ...]]] = {
    "Hopper-v5": (8e5, (500.0, 1000.0, 1080.0)),
    "Walker2d-v5": (4e5, (500.0, 700.0, 1000.0)),
    "Reacher-v5": (6e5, (-12.0, -10.0)),
}
SETTINGS: dict[str, Any] = {"evaluate_every": 2}  # all else by default


def record(task: str, early_end: bool, seed: int, timesteps: float | None = None) -> dict[str, Any]:
    """One run: rewards of the mean policy by timesteps, ended episodes and the share of steps that this saved."""
    begin = time.perf_counter()
    trained = rl.train(
        task, timesteps=timesteps or TASKS[task][0], rng=seed, threads=1, early_end=early_end, **SETTINGS
    )
    steps, rewards = trained.history["timesteps"], trained.history["mean_reward"]
    measured = ~np.isnan(rewards)
    found = {
        "task": task, "early_end": early_end, "seed": seed, "timesteps": steps[measured].astype(int).tolist(),
        "rewards": rewards[measured].round(1).tolist(), "seconds": round(time.perf_counter() - begin, 1),
    }  # fmt: skip
    if early_end:
        spent, shares = np.diff(steps, prepend=0.0), trained.history["saved"]
        saved = (spent * shares / (1.0 - shares)).sum()
        found |= {"ended": int(trained.history["ended"].sum()), "saved": round(float(saved / (steps[-1] + saved)), 4)}
    return found


def steps_to(run: dict[str, Any], target: float) -> float:
    """Timesteps at the first evaluation of the mean policy that reaches a target; infinite if none does."""
    return next((s for s, r in zip(run["timesteps"], run["rewards"], strict=True) if r >= target), np.inf)


def table(path: Path = RECORDS) -> str:
    """Timesteps to the targets of each seed and their medians, without and with early ends, as Markdown."""
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    lines = [
        "| task, reward | all to their end | early ends | ratio | steps saved |",
        "| --- | --- | --- | --- | --- |",
    ]
    for task, (_, targets) in TASKS.items():
        kinds = [[run for run in runs if run["task"] == task and run["early_end"] is kind] for kind in (False, True)]
        if not all(kinds):
            continue
        saved = np.mean([run["saved"] for run in kinds[1]])
        for target in targets:
            steps = [[steps_to(run, target) for run in kind] for kind in kinds]
            cells = [f"{_count(float(np.median(s)))} ({', '.join(map(_count, s))})" for s in steps]
            without, with_ends = (float(np.median(kind)) for kind in steps)
            shown = f"{with_ends / without:.2f}" if np.isfinite(without) and np.isfinite(with_ends) else "-"
            lines.append(f"| {task}, {target:g} | {' | '.join(cells)} | {shown} | {saved:.1%} |")
    return "\n".join(lines)


def _count(steps: float) -> str:
    return "-" if np.isinf(steps) else f"{steps / 1000:.0f}k"


def _run() -> None:
    run_missing(RECORDS, ("task", "early_end", "seed"), product(TASKS, (True, False), range(SEEDS)), record)


if __name__ == "__main__":
    if sys.argv[1:] == ["run"]:
        _run()
    print(table())
