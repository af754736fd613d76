"""The tables of the documentation are those of the records, and the sentences about them hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.spaces.methods import bits_of, compact_genetic, one_plus_one
from benchmarks.spaces.mixint import table as mixint_table
from benchmarks.spaces.pipelines import PIPELINES, pipeline
from benchmarks.spaces.problems import BINARY, problem
from benchmarks.spaces.table import beside_tpe, pipelines, records, summary, table

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "results" / "spaces"


PAGE = (ROOT / "docs" / "claims" / "spaces.md").read_text()


@pytest.mark.parametrize(
    ("made", "name"),
    [(table, "mixed"), (table, "binary"), (beside_tpe, "mixed"), (beside_tpe, "binary"), (pipelines, "pipeline")],
)
def test_the_page_shows_the_table_of_the_records(made, name: str) -> None:
    assert made(FOLDER / name) in PAGE


def test_mixed_problems_take_fewer_evaluations_than_catcma_in_the_geometric_mean() -> None:
    found = summary(FOLDER / "mixed")
    assert len(found) == 6
    assert all(row[method][2] == 10 for row in found.values() for method in ("cones", "catcma"))
    ratios = [row["cones"][0] / row["catcma"][0] for row in found.values()]
    assert np.exp(np.mean(np.log(ratios))) == pytest.approx(0.88, abs=0.005)


def test_integers_of_coco_are_solved_more_often_than_by_catcma() -> None:
    shown = mixint_table(FOLDER / "mixint")
    assert shown in PAGE
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in shown.splitlines()[2:]]
    found = {name: (int(problems), float(area), float(share)) for name, problems, area, share in cells}
    for dim in (5, 10):
        ours, theirs = found[f"{dim}-D, cones"], found[f"{dim}-D, catcma"]
        assert ours[0] == theirs[0] == 72
        assert ours[1] > theirs[1]
        assert ours[2] > theirs[2]


def test_on_bits_cones_is_the_best_of_all_but_once_within_one_percent() -> None:
    found = summary(FOLDER / "binary")
    assert len(found) == 15
    behind = []
    for name, row in found.items():
        ours, *theirs = (
            (hit, 0.0 if np.isfinite(hit) else best)
            for hit, best, _ in (row[method] for method in ("cones", "ng-1+1", "ng-cga", "catcma") if method in row)
        )
        if ours > min(theirs):
            behind.append(name)
            assert ours[1] / min(theirs)[1] < 1.01
    assert behind == ["features 100"]


def test_pipelines_end_not_worse_than_with_tpe() -> None:
    means = {}
    for row in records(FOLDER / "pipeline"):
        assert row["count"] == 150
        means.setdefault((row["problem"], row["method"]), []).append(row["best"])
    assert all(len(best) == 10 for best in means.values())
    for name in ("svm", "boosting", "network"):
        ours, theirs = (np.array(means[name, method]) for method in ("cones", "tpe"))
        error = np.sqrt((ours.var(ddof=1) + theirs.var(ddof=1)) / 10)
        assert abs(ours.mean() - theirs.mean()) < 1.4 * error
        assert (ours.mean() < theirs.mean()) == (name != "network")


@pytest.mark.parametrize("name", list(PIPELINES))
def test_pipelines_have_eight_parameters_of_three_kinds(name: str) -> None:
    space, loss = pipeline(name)
    assert len(space.names) == 8
    assert space.floats
    assert space.integers
    assert space.choices
    values = space.decode(space.start()[0])
    assert loss(values) == loss(values) < 1.5


def test_peers_of_nevergrad_are_its_own() -> None:
    """The arrays in place of its choices give the same candidates."""
    ng = pytest.importorskip("nevergrad")
    pairs = {
        "cGA": (compact_genetic, lambda: ng.p.TransitionChoice([0, 1], repetitions=20), {"arity": 2}),
        "DiscreteOnePlusOne": (one_plus_one, lambda: ng.p.Choice([0, 1], repetitions=20, deterministic=True), {}),
    }
    for name, (fast, slow, options) in pairs.items():
        seen = []
        for optimizer in (fast(20, 100), ng.optimizers.registry[name](slow(), budget=100, **options)):
            optimizer.parametrization.random_state.seed(3)
            bits = []
            for _ in range(60):
                asked = optimizer.ask()
                own = isinstance(asked.value, tuple)
                bits.append(np.array(asked.value) > 0 if own else bits_of(asked.value))
                optimizer.tell(asked, float(20 - bits[-1].sum()))
            seen.append(np.array(bits))
        np.testing.assert_array_equal(*seen)


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
