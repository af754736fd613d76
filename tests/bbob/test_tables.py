"""benchmarks.bbob: figures of records against closed forms, and what the tables say."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.bbob.figure import distribution, draw
from benchmarks.bbob.records import Record, Run, header
from benchmarks.bbob.reference import reference
from benchmarks.bbob.statistics import area, evaluations_to_last, ratios, share, summary_of_ratios
from benchmarks.bbob.table import tables
from benchmarks.bbob.targets import TARGETS


def record(last: dict[tuple[int, int], int | None], label: str = "mine", dimension: int = 5) -> Record:
    """A record whose runs reach all targets at once, or none."""
    runs = {key: Run([hit] * 51, 1e-9, hit or 10_000, 0.1) for key, hit in last.items()}
    return Record(header(label, label, {}, "bbob", dimension, 2000, {"cma": "4"}), runs)


def test_area_and_share_of_a_straight_line() -> None:
    """Target j reached at n b^(j/50): the distribution is a diagonal, so half of the area is below it."""
    n, b = 1000, 10_000
    hits: list[int | None] = [round(n * b ** (j / 50)) for j in range(51)]
    straight = Record(header("a", "a", {}, "bbob", n, b, {}), {(1, 1): Run(hits, 0.0, n * b, 1.0)})
    assert area(straight) == pytest.approx(0.5, abs=1e-4)
    assert share(straight) == 1.0
    half = Record(straight.header, {(1, 1): Run([*hits[:26], *[None] * 25], 0.0, n * b, 1.0)})
    assert area(half) == pytest.approx(sum(1 - j / 50 for j in range(26)) / 51, abs=1e-4)
    assert share(half) == 26 / 51


def test_area_is_that_under_the_distribution() -> None:
    rng = np.random.default_rng(0)
    hits = [int(h) if h < 4000 else None for h in 10 ** rng.uniform(0, 5, 51)]
    random = Record(header("a", "a", {}, "bbob", 2, 2000, {}), {(1, 1): Run(hits, 0.0, 4000, 1.0)})
    x, y = distribution(random)
    grid = np.linspace(0, math.log10(2000), 200_001)
    solved = np.r_[0.0, y][np.searchsorted(x, grid, side="right")]
    assert area(random) == pytest.approx(solved.mean(), abs=1e-4)


def test_area_has_bounds() -> None:
    assert area(record({(1, 1): 1})) == 1.0  # fewer evaluations than dimensions
    assert area(record({(1, 1): 10_000})) == 0.0
    assert area(record({(1, 1): None})) == 0.0
    assert math.isnan(area(record({})))


def test_medians_over_instances() -> None:
    some = record({(1, 1): 10, (1, 2): 40, (1, 3): None, (2, 1): None, (2, 2): 8})
    assert evaluations_to_last(some, 1) == 40
    assert evaluations_to_last(some, 2) == math.inf
    assert math.isnan(evaluations_to_last(some, 3))


def test_ratios_are_of_the_problems_that_both_have() -> None:
    mine = record({(1, 1): 50, (1, 2): 70, (2, 1): None, (8, 1): 30, (9, 1): None, (10, 1): 90})
    theirs = record({(1, 1): 100, (2, 1): 10, (8, 1): None, (9, 1): None, (10, 1): 100}, "pycma")
    found = ratios(mine, theirs, (1, 2, 8, 9, 10, 11))
    assert found[1] == 0.5
    assert found[2] == math.inf
    assert found[8] == 0.0
    assert found[10] == 0.9
    assert math.isnan(found[9])
    assert math.isnan(found[11])
    assert summary_of_ratios(found) == (0.7, math.inf)
    assert all(map(math.isnan, summary_of_ratios({})))


def test_tables_of_a_folder(tmp_path: Path) -> None:
    record({(1, 1): 50, (2, 1): 300, (3, 1): None}).write(tmp_path)
    record({(1, 1): 100, (2, 1): 200, (3, 1): 400}, "pycma").write(tmp_path)
    record({(1, 1): 10}, "third").write(tmp_path)
    text = tables(tmp_path, ["mine", "pycma"], by_function=True)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    assert rows[2][:2] == ["mine", "3"]
    assert float(rows[2][2]) == pytest.approx(2 / 3, abs=1e-3)
    assert float(rows[2][4]) == pytest.approx(-1 / 3, abs=1e-3)
    assert rows[3][:2] == ["pycma", "3"]
    assert rows[3][4:6] == ["+0.000", "1.00"]
    assert rows[4][0] == "best2009"
    assert ["f1", "20", "0.50"] in rows
    assert ["f2", "40", "1.50"] in rows
    assert ["median", "", "1.00"] in rows
    assert ["largest", "", "1.50"] in rows
    assert rows[-1][0] == "f3"
    assert rows[-1][1] == "0.000 / 0.000"
    assert "third" not in text
    assert "third" in tables(tmp_path)


def test_the_reference_has_the_expected_running_times_of_cocopp() -> None:
    """What `BestAlgSet.detERT` of cocopp returns for f10 in 5-D and for f24 in 40-D."""
    best = reference("bbob", 5, 2000, [(10, 1), (10, 4)])
    assert best is not None
    assert [best.runs[10, 4].hits[j] for j in (0, 10, 50)] == [171, 500, 902]
    assert best.runs[10, 1] == best.runs[10, 4]
    best = reference("bbob", 40, 2000, [(24, 1)])
    assert best is not None
    assert best.runs[24, 1].hits[0] == 38_677
    assert best.runs[24, 1].hits[5:] == [None] * 46
    assert best.runs[24, 1].best in TARGETS
    assert reference("bbob-largescale", 640, 200, [(1, 1)]) is not None
    assert reference("bbob", 7, 200, [(1, 1)]) is None


def test_the_figure_has_a_panel_per_dimension(tmp_path: Path) -> None:
    for dimension in (5, 10, 20):
        for label in ("cones", "pycma", "cmaes"):
            record({(f, 1): 100 * f for f in (1, 2, 3)}, label, dimension).write(tmp_path)
    draw(tmp_path, tmp_path / "a.png")
    draw(tmp_path, tmp_path / "b.png", dimensions=[5], labels=["cones"])
    assert (tmp_path / "a.png").stat().st_size > (tmp_path / "b.png").stat().st_size > 10_000
    with pytest.raises(ValueError, match="no records of bbob-largescale"):
        draw(tmp_path, tmp_path / "c.png", "bbob-largescale")


def test_a_suite_without_a_reference_has_tables_and_a_figure(tmp_path: Path) -> None:
    for label, hit in (("cones", 10), ("pycma", 40)):
        made = Record(header(label, label, {}, "bbob-constrained", 5, 1000, {}), {})
        made.runs[1, 1] = Run([hit] * 51, 1e-9, hit, 0.1)
        made.write(tmp_path)
    assert "| +0.000" in tables(tmp_path)
    draw(tmp_path, tmp_path / "figure.png", "bbob-constrained")
    assert (tmp_path / "figure.png").stat().st_size > 1000
