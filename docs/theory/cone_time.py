"""Theorem 1: the step as a cone program and as a scalar dual, in time, from the recorded benchmark.

`make benchmark` measures both in one run; the numbers here are those of benchmarks/RESULTS.md, median over radii.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from drawing import CONES, GREEN, Ground, legend, main, panels

RECORD = Path(__file__).parents[2] / "benchmarks" / "RESULTS.md"
ROW = re.compile(r"^\| (diagonal|full) +\| (\d+) +\| [\d.]+ +\| (\d+) +\| (\d+) +\| ", re.MULTILINE)


def times(kind: str) -> tuple[Any, Any, Any]:
    """n, and milliseconds of the dual and of CVXPY with Clarabel."""
    rows = [
        (int(n), float(dual) / 1e3, float(cone))
        for which, n, dual, cone in ROW.findall(RECORD.read_text())
        if which == kind
    ]
    sizes = sorted({n for n, *_ in rows})
    medians = [np.median([row[1:] for row in rows if row[0] == n], axis=0) for n in sizes]
    return np.array(sizes), *np.array(medians).T


def draw(ground: Ground) -> Any:
    figure, axes = panels(ground, (8.2, 3.3), 2)
    names = {"diagonal": "second-order and exponential cones", "full": "semidefinite and exponential cones"}
    for axis, (kind, cone) in zip(axes, names.items(), strict=True):
        n, dual, clarabel = times(kind)
        axis.loglog(n, clarabel, "o-", color=GREEN, linewidth=1.6, markersize=4, label="CVXPY + Clarabel")
        axis.loglog(n, dual, "o-", color=CONES, linewidth=1.6, markersize=4, label="exact dual")
        axis.text(
            n[-1],
            np.sqrt(clarabel[-1] * dual[-1]),
            f"{clarabel[-1] / dual[-1]:,.0f}x ",
            color=ground.ink,
            fontsize=9,
            ha="right",
            va="center",
        )
        axis.set_title(f"{kind} covariance:\n{cone}")
        axis.set_xlabel(r"dimension $n$")
        axis.set_ylim(0.05, 3e4)
        axis.set_xticks(n, [str(value) for value in n])
        axis.minorticks_off()
    axes[0].set_ylabel("milliseconds per step")
    legend(axes[0], ground, loc="upper left")
    return figure


if __name__ == "__main__":
    main(draw)
