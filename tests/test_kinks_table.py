"""The table of the documentation is that of the records."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.kinks import PEERS, gaps, table

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("folder", ["kinks", "kinks-many"])
def test_the_page_shows_the_table_of_the_records(folder: str) -> None:
    assert table(ROOT / "results" / folder) in (ROOT / "docs" / "claims" / "kinks.md").read_text()


@pytest.mark.parametrize("folder", ["kinks", "kinks-many"])
def test_every_run_is_there_and_no_loss_is_below_the_minimum(folder: str) -> None:
    found = gaps(ROOT / "results" / folder)
    assert len(found) == 10
    for by_method in found.values():
        assert set(PEERS) < set(by_method)
        assert all(len(values) == 5 and min(values) >= -1e-6 for values in by_method.values())


def test_medians_and_ratios() -> None:
    found = gaps(ROOT / "results" / "kinks")["Max-Norm, 30-D"]
    (row,) = (line for line in table(ROOT / "results" / "kinks").splitlines() if line.startswith("| Max-Norm, 30-D"))
    cells = [float(cell) for cell in row.split("|")[2:-1]]
    middle = [sorted(values)[2] for values in found.values()]
    np.testing.assert_allclose(cells[: len(found)], middle, rtol=0.05)
    best = min(sorted(found[name])[2] for name in PEERS)
    assert cells[len(found)] == pytest.approx(middle[0] / best, rel=0.05)
