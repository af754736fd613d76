"""The campaign that kills workers, in a short form. Those of Ray die in tests/evaluate/test_ray.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def test_runs_whose_workers_are_killed_end_as_others() -> None:
    pytest.importorskip("distributed")
    # A process of its own: the campaign kills whatever runs below it.
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.attack.workers", "--kills", "9", "--kinds", "pool, forked", "Dask"],
        capture_output=True, text=True, timeout=300, check=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()[2:]]
    assert [(name, failures) for name, _, failures in rows] == [
        ("workers killed: pool, forked", "0"),
        ("workers killed: Dask", "0"),
    ], done.stderr[-3000:]
    assert sum(int(tries) for _, tries, _ in rows) >= 9
