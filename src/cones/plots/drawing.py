"""What all figures share: colours, axes, curves in a band of their deviation, files without a date."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from cones.extras import require_extra
from cones.types import Vector

__all__ = [
    "COLOURS",
    "colour_of",
    "draw_curve",
    "legend_below",
    "new_figure",
    "plain",
    "save_figure",
    "style_axis",
    "wants_log",
]

# One colour per method throughout: figures, report, README. Distinguishable with colour-blind eyes
# and on light and dark ground.
COLOURS = {"ES": "#4477aa", "NES": "#ccbb44", "CMA": "#aa3377", "CoNES": "#ee6677"}
OTHERS = ("#228833", "#66ccee", "#7777aa", "#994455", "#997700")


def colour_of(method: str, methods: list[str]) -> str:
    unknown = [name for name in methods if name not in COLOURS]
    return COLOURS.get(method) or OTHERS[unknown.index(method) % len(OTHERS)]


def wants_log(curves: list[Vector]) -> bool:
    """A logarithmic axis serves where positive losses span more than a factor of twenty; rewards are not like that."""
    values = np.concatenate([*curves, np.empty(0)])
    values = values[np.isfinite(values)]
    return bool(values.size) and bool((values > 0.0).all()) and float(values.max() / values.min()) > 20.0


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
    axis: Any, x: Vector, mean: Vector, deviation: Vector | None, colour: str, log: bool, **style: Any
) -> Any:
    """A line, in a band of its standard deviation if there is one."""
    if deviation is not None:
        low = mean - deviation
        if log:
            low = np.maximum(low, 0.1 * mean)  # a band that reaches zero has no place on a logarithmic axis
        axis.fill_between(x, low, mean + deviation, color=colour, alpha=0.2, linewidth=0)
    marker = {"marker": "o", "markersize": 3} if x.size == 1 else {}  # a line needs two points to be seen
    (line,) = axis.plot(x, mean, color=colour, **{"linewidth": 1.4, **marker, **style})
    return line


def legend_below(figure: Any, lines: Mapping[str, Any], across: int) -> None:
    """Name the lines below the panels, of which there are so many across, in as many columns as fit."""
    fitting = int(40 * across / (max(map(len, lines)) + 7))
    names = [plain(name) for name in lines]
    ncols = min(len(names), max(fitting, 1))
    figure.legend(list(lines.values()), names, loc="outside lower center", ncols=ncols, frameon=False)


def style_axis(axis: Any, title: str, xlabel: str) -> None:
    """What all panels of all figures share."""
    axis.set_title(title, fontsize=10)
    axis.set_xlabel(xlabel)
    if axis.get_xscale() == "linear":
        axis.ticklabel_format(axis="x", style="sci", scilimits=(0, 3))
    axis.grid(alpha=0.25, linewidth=0.5)
    axis.spines[["top", "right"]].set_visible(False)
