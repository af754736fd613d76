"""The tables of the documentation are those of the records, and the records are complete."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.estimators import PAGES, STEPS, by_estimator, complete, ends, filled, tables

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"


@pytest.mark.parametrize("name", PAGES)
def test_the_pages_show_the_tables_of_the_records(name: str) -> None:
    page = (ROOT / "docs" / PAGES[name]).read_text()
    assert f"<!-- table: {name} -->" in page
    assert filled(page, name, tables(RESULTS)[name]) == page


def test_cells_are_medians_of_the_last_losses_of_the_runs() -> None:
    summary = complete(RESULTS / "corrupted")
    assert summary is not None
    found = ends(summary)
    for group in summary.groups:
        losses = [float(record.columns["loss_at_mean"][-1]) for record in group.records]
        assert found[group.problem][group.method] == pytest.approx(np.median(losses))


def test_a_seed_that_is_not_complete_does_not_count() -> None:
    for name in ("estimators", "corrupted", "relatives"):
        summary = complete(RESULTS / name)
        assert summary is not None
        assert len({tuple(record.run["seed"] for record in group.records) for group in summary.groups}) == 1
        assert all(record.finished for group in summary.groups for record in group.records)


def test_the_robust_fit_converges_and_the_ridge_does_not() -> None:
    """What the text says about a fifth of the losses arbitrary; the means start at losses of 900 and 99."""
    summary = complete(RESULTS / "corrupted")
    assert summary is not None
    for losses in ends(summary).values():
        assert losses["rbo absolute"] < 120.0 < 900.0 < losses["rbo ridge"]
        assert losses["ranks"] < 120.0 < 900.0 < losses["raw losses"]


@pytest.mark.parametrize("name", ["estimators", "estimators-swimmer"])
def test_every_estimator_has_every_step(name: str) -> None:
    summary = complete(RESULTS / name)
    assert summary is not None
    found = ends(summary)
    assert len(found) == (8 if name == "estimators" else 1)
    for losses in found.values():
        cells = by_estimator(losses)
        assert list(cells) == ["score_function", "orthogonal", "past_directions", "rbo", "asebo"]
        assert all(set(cell) == set(STEPS) for cell in cells.values())
