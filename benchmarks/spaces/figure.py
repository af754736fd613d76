"""The mean loss of the best trial so far on pipelines of scikit-learn, over trials."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.spaces.table import records
from cones.plots.colours import colour_of
from cones.plots.drawing import draw_curve, new_figure, save_figure, style_axis
from cones.plots.labels import label_ends

__all__ = ["draw"]

NAMES = {"cones": "CoNES", "tpe": "TPE"}
TITLES = {
    "boosting": "boosting, diabetes: 1 - R²",
    "network": "network, wine: log loss",
    "svm": "SVM, digits: share of errors",
}
TICKS = [digit * 10.0**power for power in range(-4, 3) for digit in (1, 2, 5)]
FROM = 10  # trials before are random for both


def draw(folder: Path, out: Path) -> None:
    """Write a figure with a panel per pipeline."""
    runs: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in records(folder):
        runs[row["problem"]][row["method"]].append(row)
    figure = new_figure((3.7 * len(runs), 3.0))
    for axis, (problem, by_method) in zip(
        figure.subplots(1, len(runs), squeeze=False)[0], sorted(runs.items()), strict=True
    ):
        ends = []
        for method, rows in sorted(by_method.items()):
            colour = colour_of(NAMES[method], list(NAMES.values()))
            trials = np.arange(FROM, rows[0]["budget"] + 1)
            curves = np.array([_best(row, trials) for row in rows])
            error = curves.std(axis=0, ddof=1) / np.sqrt(len(rows))
            draw_curve(axis, trials, curves.mean(axis=0), error, colour, log=True)
            ends.append((float(curves[:, -1].mean()), NAMES[method], colour))
        low, high = axis.get_ylim()
        if low > 0.0 and high > 5.0 * low:
            axis.set_yscale("log")
            axis.set_yticks([t for t in TICKS if low <= t <= high], minor=False)
            axis.minorticks_off()
            axis.yaxis.set_major_formatter("{x:g}")
        axis.set_xlim(FROM, trials[-1])
        style_axis(axis, TITLES[problem], "trials")
        label_ends(axis, ends)
    save_figure(figure, out)


def _best(row: dict[str, Any], trials: np.ndarray) -> np.ndarray:
    """The best loss after each number of trials. A record keeps a part of the improvements, and the last."""
    improvements = [*row["improvements"], [row["budget"], row["best"]]]
    return np.array([min(loss for count, loss in improvements if count <= trial) for trial in trials])
