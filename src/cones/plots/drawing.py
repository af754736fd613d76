"""What all figures share: scales, curves with their seeds or in a band of their deviation, files without a date."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from cones.extras import require_extra
from cones.types import Vector

__all__ = [
    "FEW_SEEDS",
    "draw_curve",
    "log_floor",
    "make_log",
    "new_figure",
    "plain",
    "save_figure",
    "style_axis",
    "wants_log",
]

FEW_SEEDS = 5  # fewer than these are drawn one by one: a band of three numbers says little
DECADES = 14  # that a logarithmic axis spans at most; what lies below is zero for a reader
FEWEST_ZEROS = 0.1  # the share of zeros that a logarithmic axis leaves out


def wants_log(curves: Sequence[Vector]) -> bool:
    """True if values, positive apart from a few zeros, span more than a factor of twenty; rewards rarely do."""
    values = np.concatenate([*curves, np.empty(0)])
    values = values[np.isfinite(values)]
    positive = values[values > 0.0]
    if not positive.size or (values < 0.0).any() or positive.size < (1.0 - FEWEST_ZEROS) * values.size:
        return False
    return float(positive.max()) > 20.0 * float(positive.min())


def log_floor(curves: Sequence[Vector]) -> float:
    """The lowest value that a logarithmic axis shows."""
    values = np.concatenate([*curves, np.empty(0)])
    positive = values[np.isfinite(values) & (values > 0.0)]
    return max(float(positive.min()), float(positive.max()) * 10.0**-DECADES)


def make_log(axis: Any, curves: Sequence[Vector]) -> None:
    """Make the axis, on which the curves are drawn, logarithmic and no longer than can be read."""
    axis.set_yscale("log", nonpositive="mask")
    values = np.concatenate(curves)
    lowest = float(values[np.isfinite(values)].max()) * 10.0**-DECADES
    if lowest > axis.get_ylim()[0]:
        axis.set_ylim(bottom=lowest)


def new_figure(size: tuple[float, float]) -> Any:
    """An empty figure that needs no screen."""
    require_extra("matplotlib", "experiments", "a figure")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained", dpi=160)
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Any, path: str | PathLike[str]) -> None:
    """Write a figure in the format that the file's name ends with."""
    # No date inside: the same records give the same file.
    undated: dict[str, dict[str, None]] = {
        ".png": {"Software": None},
        ".pdf": {"CreationDate": None},
        ".svg": {"Date": None},
    }
    figure.savefig(path, metadata=undated.get(Path(path).suffix.lower()))


def plain(text: str) -> str:
    """Text in which matplotlib finds no formulas."""
    return text.replace("$", r"\$")


def draw_curve(
    axis: Any,
    x: Vector,
    mean: Vector,
    deviation: Vector | None,
    colour: str,
    log: bool,
    seeds: Sequence[tuple[Vector, Vector]] = (),
    **style: Any,
) -> Any:
    """A line, in a band of its standard deviation if there is one, with thin lines for the seeds that are given."""
    for seed in seeds:
        axis.plot(*seed, color=colour, linewidth=0.5, alpha=0.6)
    if deviation is not None:
        low = mean - deviation
        if log:
            low = np.maximum(low, 0.1 * mean)  # a band that reaches zero has no place on a logarithmic axis
        axis.fill_between(x, low, mean + deviation, color=colour, alpha=0.2, linewidth=0)
    marker = {"marker": "o", "markersize": 3} if x.size == 1 else {}  # a line needs two points to be seen
    (line,) = axis.plot(x, mean, color=colour, **{"linewidth": 1.4, **marker, **style})
    return line


def style_axis(axis: Any, title: str, xlabel: str) -> None:
    """What all panels of all figures share."""
    axis.set_title(title, fontsize=10)
    axis.set_xlabel(xlabel)
    if axis.get_xscale() == "linear":
        axis.ticklabel_format(axis="x", style="sci", scilimits=(0, 4))
    axis.grid(alpha=0.25, linewidth=0.5)
    axis.spines[["top", "right"]].set_visible(False)
