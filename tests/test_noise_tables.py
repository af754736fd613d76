"""The tables of noise, warm starts and training loops in the documentation are those of the records."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import asynchronous_training, early_ends, noise, warm
from benchmarks.asynchronous_training import Clock

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize(
    ("page", "made"),
    [("noise.md", noise), ("asynchronous.md", warm), ("rl.md", early_ends), ("rl.md", asynchronous_training)],
)
def test_the_page_shows_the_table_of_the_records(page: str, made: object) -> None:
    assert made.table() in (DOCS / page).read_text()  # type: ignore[attr-defined]


def test_without_noise_measurements_are_at_most_a_twentieth_of_the_evaluations() -> None:
    runs = [json.loads(line) for line in noise.RECORDS.read_text().splitlines()]
    exact = [run["times"] for run in runs if run["replicates"] and not run["noise"]]
    assert len(exact) == 5 * noise.SEEDS + 20
    assert 1.0 < min(exact) <= max(exact) < 1.05


def test_records_can_be_made_again() -> None:
    lines = [json.loads(line) for line in noise.RECORDS.read_text().splitlines()]
    (known,) = (
        run for run in lines if run["problem"] == "Sphere" and run["dim"] == 10 and run["noise"] == 0.0
        and run["replicates"] and run["seed"] == 0
    )  # fmt: skip
    assert noise.record("Sphere", 10, 0.0, True, 0, 10_000)["nfev"] == known["nfev"]
    warmed = [warm.record("Sphere", start, 0, dim=20, points=200) for start in ("cold", "warm", "similar")]
    assert all(run["reached"] for run in warmed)
    assert warmed[1]["nfev"] < 0.5 * warmed[0]["nfev"]


def test_warm_starts_need_at_most_half_the_evaluations() -> None:
    runs = [json.loads(line) for line in warm.RECORDS.read_text().splitlines()]
    for name in warm.PROBLEMS:
        cold, *others = [
            np.median([run["nfev"] for run in runs if (run["problem"], run["start"]) == (name, start)])
            for start in warm.STARTS
        ]
        assert max(others) <= 0.5 * cold


def test_simulated_workers_take_the_time_that_a_schedule_by_hand_gives() -> None:
    clock = Clock(2, 0)
    clock._durations = iter([3.0, 1.0, 1.0, 5.0])
    assert [clock.begin() for _ in range(4)] == [3.0, 1.0, 2.0, 7.0]
    assert clock.busy == 10.0
    for asynchronous in (True, False):
        run = asynchronous_training.record(asynchronous, 0, timesteps=6000, task="Reacher-v5")
        assert 0.0 < run["busy"] <= 1.0
        assert run["timesteps"] >= 6000
