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
    "short_number",
    "style_axis",
    "wants_log",
]

FEW_SEEDS = 5  # fewer than these are drawn one by one: a band of three numbers says little
DECADES = 14  # that a logarithmic axis spans at most; what lies below is zero for a reader
FEWEST_ZEROS = 0.1  # the share of zeros that a logarithmic axis leaves out


def wants_log(curves: Sequence[Vector]) -> bool:
    """True if values, positive apart from a few zeros, span more than a factor of twenty. Rewards are not like that.

    Curves of zeros alone, as the steps of a run that starts at the optimum, do not count.
    """
    values = np.concatenate([*(curve for curve in curves if curve.any()), np.empty(0)])
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
    """Make the axis, on which the curves are drawn, logarithmic and no longer than can be read.

    Powers of ten are marked, or numbers like 0.2, 0.5, 1 where there are fewer than two.
    """
    axis.set_yscale("log", nonpositive="mask")
    low, high = sorted(axis.get_ylim())
    if 0.0 < low and high < 100.0 * low:
        from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

        axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.yaxis.set_major_formatter(FuncFormatter(short_number))
        axis.yaxis.set_minor_formatter(NullFormatter())
    values = np.concatenate(curves)
    lowest = float(values[np.isfinite(values)].max()) * 10.0**-DECADES
    if lowest > axis.get_ylim()[0]:
        axis.set_ylim(bottom=lowest)


def short_number(value: float, _: int = 0) -> str:
    """A tick label: 0.5, 200, 1.5k, 20k, 3M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


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

    def dot(place: Vector) -> dict[str, Any]:
        return {"marker": "o", "markersize": 3} if place.size == 1 else {}  # a line needs two points to be seen

    for seed in seeds:
        axis.plot(*seed, color=colour, linewidth=0.5, alpha=0.6, **dot(seed[0]))
    if deviation is not None:
        low = mean - deviation
        if log:
            low = np.maximum(low, 0.1 * mean)  # a band that reaches zero has no place on a logarithmic axis
        axis.fill_between(x, low, mean + deviation, color=colour, alpha=0.2, linewidth=0)
    (line,) = axis.plot(x, mean, color=colour, **{"linewidth": 1.4, **dot(x), **style})
    return line


def style_axis(axis: Any, title: str, xlabel: str) -> None:
    """What all panels of all figures share."""
    axis.set_title(title, fontsize=10)
    axis.set_xlabel(xlabel)
    for side, scale in ((axis.xaxis, axis.get_xscale()), (axis.yaxis, axis.get_yscale())):
        if scale == "linear":
            side.set_major_formatter(short_number)
    axis.grid(alpha=0.25, linewidth=0.5)
    axis.spines[["top", "right"]].set_visible(False)
