"""Runtime distributions: the share of all pairs of problem and target that are solved, over evaluations / n."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import ceil, log10
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bbob.records import Record
from benchmarks.bbob.reference import is_reference
from benchmarks.bbob.statistics import restricted, share
from benchmarks.bbob.table import grouped
from cones.plots.colours import COLOURS, colour_of
from cones.plots.drawing import new_figure, save_figure, style_axis
from cones.plots.labels import label_ends

__all__ = ["distribution", "draw"]

REFERENCE = "#888888"
Values = NDArray[np.float64]


def distribution(record: Record) -> tuple[Values, Values]:
    """Corners of the distribution: log10(evaluations / n) of the solved pairs in order, and the share up to each."""
    hits = [hit for run in record.runs.values() for hit in run.hits]
    solved = np.sort(np.array([hit for hit in hits if hit is not None], dtype=float))
    return np.log10(solved / record.dimension), np.arange(1, solved.size + 1) / max(len(hits), 1)


def draw(
    folder: Path,
    out: Path,
    suite: str = "bbob",
    dimensions: Collection[int] | None = None,
    labels: Sequence[str] | None = None,
) -> None:
    """Write a figure with a panel per dimension and a line per method."""
    groups = {
        dimension: [r for r in records if labels is None or r.label in labels or is_reference(r)]
        for (found, dimension), records in grouped(folder, labels, "").items()
        if found == suite and (dimensions is None or dimension in dimensions)
    }
    if not groups:
        raise ValueError(f"no records of {suite} in {folder}")
    names = list(dict.fromkeys(r.label for records in groups.values() for r in records if not is_reference(r)))
    first = next((name for name in names if name.startswith("cones")), None)
    colours = {name: colour_of("CoNES" if name == first else name, [*names, "CoNES"]) for name in names}
    across = min(len(groups), 2)
    down = ceil(len(groups) / across)
    figure = new_figure((5.2 * across, 3.6 * down + 0.3))
    axes = figure.subplots(down, across, squeeze=False).ravel()
    shown = {dimension: _common(records) for dimension, records in groups.items()}
    top = min(1.0, 0.1 + max(share(record) for records in shown.values() for record in records))
    for axis, (dimension, records) in zip(axes, shown.items(), strict=False):
        _panel(axis, dimension, records, colours, top)
    for axis in axes[len(groups) :]:
        axis.set_visible(False)
    save_figure(figure, out)


def _common(records: Sequence[Record]) -> list[Record]:
    """The records of the problems that all of them have: a line is compared with the others."""
    problems = set.intersection(*(set(record.runs) for record in records))
    return [restricted(record, problems) for record in records]


def _panel(axis: Any, dimension: int, records: Sequence[Record], colours: dict[str, str], top: float) -> None:
    """One dimension. Lines are named at their right end, where they are compared."""
    end = log10(max(record.budget for record in records))
    ends = []
    for record in records:
        x, y = distribution(record)
        colour = colours.get(record.label, REFERENCE)
        style: dict[str, Any] = {"linewidth": 2.0 if colour == COLOURS["CoNES"] else 1.3, "color": colour}
        if is_reference(record):
            style |= {"linestyle": (0, (4, 2)), "zorder": 1}
        last = y[-1] if y.size else 0.0
        axis.step(np.r_[0.0, np.maximum(x, 0.0), end], np.r_[0.0, y, last], where="post", **style)
        ends.append((float(last), f"{record.label} {last:.2f}", colour))
    budget = next(iter(records)).budget
    style_axis(axis, f"{dimension}-D, {len(records[0].runs)} problems, {budget} n evaluations", "evaluations / n")
    axis.set_xlim(0, end)
    axis.set_ylim(0, top)
    ticks = [t for t in range(ceil(end) + 1) if t <= end + 1e-9]
    axis.set_xticks(ticks, [f"{10**t}" for t in ticks])
    if axis.get_subplotspec().is_first_col():
        axis.set_ylabel("share of targets reached")
    label_ends(axis, ends, gap=0.055)
