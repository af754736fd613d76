"""The tables of the documentation are those of the records, and the records are complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.estimators import STEPS, by_estimator, ends, refined_table, table
from cones.experiments.summary import summarise
from cones.records.folder import Folder

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"


def test_the_pages_show_the_tables_of_the_records() -> None:
    assert table(RESULTS / "relatives") in (ROOT / "docs" / "relatives.md").read_text()
    page = (ROOT / "docs" / "estimators.md").read_text()
    assert table(RESULTS / "corrupted") in page
    assert refined_table(RESULTS / "estimators") in page


def test_cells_are_the_last_losses_of_the_runs() -> None:
    folder = Folder(RESULTS / "corrupted")
    found = ends(summarise(folder))
    for record in folder.records():
        (problem,) = (name for name in found if name.lower().startswith(record.run["problem"]["problem"]))
        assert found[problem][record.run["label"]] == pytest.approx(float(record.columns["loss_at_mean"][-1]))


def test_the_robust_fit_converges_and_the_ridge_does_not() -> None:
    """What the text says about a fifth of the losses arbitrary; the means start at losses of 900 and 99."""
    for losses in ends(summarise(Folder(RESULTS / "corrupted"))).values():
        assert losses["rbo absolute"] < 120.0 < 900.0 < losses["rbo ridge"]
        assert losses["ranks"] < 120.0 < 900.0 < losses["raw losses"]


def test_every_estimator_has_every_step() -> None:
    found = ends(summarise(Folder(RESULTS / "estimators")))
    assert len(found) == 8
    for losses in found.values():
        cells = by_estimator(losses)
        assert list(cells) == ["score_function", "orthogonal", "past_directions", "rbo", "asebo"]
        assert all(set(cell) == set(STEPS) for cell in cells.values())
