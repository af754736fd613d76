"""The tables of noise and of warm starts in the documentation are those of the records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import noise, warm

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize(("page", "made"), [("noise.md", noise), ("asynchronous.md", warm)])
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
