"""What runs have to show before their end, from the records."""

from __future__ import annotations

from pathlib import Path

import numpy as np

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


def test_the_page_says_how_often_it_is_behind() -> None:
    counts = table(FOLDER).splitlines()[-1].strip("| ").split(" | ")[1:]
    page = (ROOT / "docs" / "claims" / "many_dimensions.md").read_text()
    assert f"on {counts[0]}, {counts[1]}, {counts[2]} and {counts[3]} of these 16 rows" in page
    assert counts[4] == "0"
