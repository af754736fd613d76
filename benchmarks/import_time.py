"""Time of `import cones` beyond that of importing NumPy and SciPy."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

from benchmarks.measure import side_by_side, table, verdict

TITLE = "import cones"
BASE = "import numpy, scipy, scipy.linalg, scipy.optimize, scipy.special"
LIMIT = 0.5


def run() -> str:
    codes = (BASE, BASE + ", cones")
    calls = [partial(subprocess.run, [sys.executable, "-c", code], check=True) for code in codes]
    base, full = side_by_side(calls, 7)
    rows = [["NumPy and SciPy", f"{base:.2f}", "-"], ["and cones", f"{full:.2f}", verdict(full - base < LIMIT)]]
    return table(TITLE, ("imports", "seconds", "target"), rows) + f"\nTarget: less than {LIMIT} s more.\n"
