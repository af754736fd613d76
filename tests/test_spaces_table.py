"""The tables of the documentation are those of the records, and the sentences about them hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.spaces.mixint import table as mixint_table
from benchmarks.spaces.problems import BINARY, problem
from benchmarks.spaces.table import records, summary, table

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "results" / "spaces"


@pytest.mark.parametrize("name", ["mixed", "binary"])
def test_the_page_shows_the_table_of_the_records(name: str) -> None:
    assert table(FOLDER / name) in (ROOT / "docs" / "spaces.md").read_text()


def test_mixed_problems_take_fewer_evaluations_than_catcma_in_the_geometric_mean() -> None:
    found = summary(FOLDER / "mixed")
    assert len(found) == 6
    ratios = [row["cones"][0] / row["catcma"][0] for row in found.values()]
    assert np.isfinite(ratios).all()
    assert np.exp(np.mean(np.log(ratios))) < 0.9


def test_integers_of_coco_are_solved_more_often_than_by_catcma() -> None:
    shown = mixint_table(FOLDER / "mixint")
    assert shown in (ROOT / "docs" / "spaces.md").read_text()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in shown.splitlines()[2:]]
    found = {name: (int(problems), float(area), float(share)) for name, problems, area, share in cells}
    for dim, problems in ((5, 72), (10, 24)):
        ours, theirs = found[f"{dim}-D, cones"], found[f"{dim}-D, catcma"]
        assert ours[0] == theirs[0] == problems
        assert ours[1] > theirs[1]
        assert ours[2] > theirs[2]


def test_medians_are_those_of_the_runs() -> None:
    rows = [r for r in records(FOLDER / "mixed") if (r["method"], r["problem"]) == ("cones", "sphere 5+5+5")]
    assert len(rows) == 10
    assert summary(FOLDER / "mixed")["sphere 5+5+5"]["cones"][0] == np.median([row["hit"] for row in rows])


@pytest.mark.parametrize("name", [*BINARY, "sphere", "ellipsoid", "rosenbrock"])
def test_problems_have_the_losses_that_they_claim(name: str) -> None:
    size = 5 if name not in BINARY else 100
    made = problem(name, size)
    if name in ("onemax", "leading_ones", "trap5"):
        assert made.loss({"bits": np.ones(size, bool)}) == 0.0
        assert made.loss({"bits": np.zeros(size, bool)}) == (20.0 if name == "trap5" else 100.0)
    elif name == "knapsack":  # no load is worth more than the relaxation's bound
        rng = np.random.default_rng(0)
        assert min(made.loss({"bits": rng.random(size) < 0.5}) for _ in range(200)) > 0.0
    elif name == "features":
        assert made.loss({"bits": np.zeros(size, bool)}) == 1.0
        assert made.loss({"bits": np.ones(size, bool)}) < 0.2
    else:
        best = {"x": np.full(5, 1.5), "z": np.full(5, 2), "c": np.arange(5)}
        assert made.loss(best) == 0.0
        assert made.loss({**best, "c": np.zeros(5, int)}) == 4.0
        assert made.loss({**best, "x": np.full(5, 2.5)}) > 1.0
