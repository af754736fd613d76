"""The campaign of `benchmarks/attack` in a short form. The whole of it is `python -m benchmarks.attack`."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from benchmarks.attack import files, kills, settings, steps

pytest.importorskip("cma")
pytest.importorskip("cmaes")


@pytest.mark.parametrize(
    ("part", "count"), [(files, 600), (settings, 60), (steps, 3000)], ids=["files", "settings", "steps"]
)
def test_no_attack_succeeds(part: object, count: int) -> None:
    for name, tries, failures in part.campaign(count, np.random.default_rng(1)):  # type: ignore[attr-defined]
        assert tries > 0
        assert failures == 0, name


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("kind", ["command", "train"])
def test_a_killed_run_ends_as_if_it_had_not_been(kind: str) -> None:
    if kind == "train":
        pytest.importorskip("gymnasium")
    ((_, kills_made, failures),) = kills.campaign(2, np.random.default_rng(1), (kind,))
    assert (kills_made, failures) == (2, 0)
