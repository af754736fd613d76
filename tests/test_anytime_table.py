"""What runs have to show before their end, from the records."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.anytime import PARTS, losses, table
from cones.records.folder import Folder

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "results" / "adaptive"


def test_a_loss_is_that_of_the_last_population_within_its_part_of_the_budget() -> None:
    found = losses(FOLDER)["Rosenbrock, 1000-D"]["CoNES adaptive"]
    expected = []
    for record in Folder(FOLDER).records():
        problem = record.run["problem"]
        if (record.run["label"], problem["problem"], problem["dim"]) == ("CoNES adaptive", "rosenbrock", 1000):
            pairs = list(zip(record.columns["evaluations"], record.columns["mean_loss"], strict=True))
            expected.append([[loss for count, loss in pairs if count <= part * 100_000][-1] for part in PARTS])
    assert len(expected) == 5
    np.testing.assert_allclose(found, np.mean(expected, axis=0))


@pytest.mark.parametrize(
    ("column", "row"),
    [("mean_loss", "by the mean loss"), ("best", "by the mean loss"), ("loss_at_mean", "by the loss at")],
)
def test_the_page_says_how_often_it_is_behind(column: str, row: str) -> None:
    counts = table(FOLDER, column).splitlines()[-1].removeprefix("| behind on ")
    page = (ROOT / "docs" / "claims" / "many_dimensions.md").read_text()
    (line,) = (line for line in page.splitlines() if line.startswith(f"| {row}") and line.endswith("| 0 | 0 |"))
    assert line.endswith(counts)
