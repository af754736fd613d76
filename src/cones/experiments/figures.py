"""Figures in the paper's layout: a panel per problem, a line per method, the standard deviation shaded."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from cones.errors import MissingExtraError
from cones.experiments.summary import Summary
from cones.types import Vector

__all__ = [
    "COLOURS",
    "colour_of",
    "draw_curve",
    "draw_figures",
    "figures_of",
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

# By name: the column that is drawn, and what it is.
ON_FUNCTIONS = {
    "loss": ("mean_loss", "mean loss of the population"),
    "step": ("step", "length of the mean's step"),
}
ON_TASKS = {
    "reward": ("mean_reward", "reward of the mean policy"),
    "population": ("population_reward", "mean reward of the population"),
}


def figures_of(summary: Summary) -> dict[str, tuple[str, str]]:
    return ON_TASKS if summary.on_tasks else ON_FUNCTIONS


def colour_of(method: str, methods: list[str]) -> str:
    unknown = [name for name in methods if name not in COLOURS]
    return COLOURS.get(method) or OTHERS[unknown.index(method) % len(OTHERS)]


def wants_log(curves: list[Vector]) -> bool:
    """A logarithmic axis serves where positive losses span more than a factor of twenty; rewards are not like that."""
    values = np.concatenate([*curves, np.empty(0)])
    values = values[np.isfinite(values)]
    return bool(values.size) and bool((values > 0.0).all()) and float(values.max() / values.min()) > 20.0


def draw_figures(summary: Summary, folder: Path) -> list[Path]:
    """Write loss.png and step.png, or reward.png and population.png, and the same as PDF into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    problems, methods = summary.problems, summary.methods
    for name, (column, title) in figures_of(summary).items():
        columns = min(4, len(problems))
        rows = -(-len(problems) // columns)
        figure = new_figure((3.4 * columns, 2.9 * rows + 0.5))
        axes: Any = figure.subplots(rows, columns, squeeze=False)
        lines: dict[str, Any] = {}
        for axis, problem in zip(axes.flat, problems, strict=False):
            lines |= _panel(axis, summary, problem, column, methods)
        for axis in list(axes.flat)[len(problems) :]:
            axis.set_visible(False)
        for axis in axes[:, 0]:
            axis.set_ylabel(title)
        legend_below(figure, lines, columns)
        for ending in ("png", "pdf"):
            path = folder / f"{name}.{ending}"
            save_figure(figure, path)
            written.append(path)
    return written


def legend_below(figure: Any, lines: Mapping[str, Any], across: int) -> None:
    """Name the lines below the panels, of which there are so many across, in as many columns as fit."""
    fitting = int(40 * across / (max(map(len, lines)) + 7))
    names = [plain(name) for name in lines]
    ncols = min(len(names), max(fitting, 1))
    figure.legend(list(lines.values()), names, loc="outside lower center", ncols=ncols, frameon=False)


def new_figure(size: tuple[float, float]) -> Any:
    """An empty figure that needs no screen."""
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtraError("figures need matplotlib; run: pip install 'cones[experiments]'")
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


def _panel(axis: Any, summary: Summary, problem: str, column: str, methods: list[str]) -> dict[str, Any]:
    lines = {}
    curves = [(group, *group.curve(column)) for group in summary.of(problem)]
    log = not summary.on_tasks and wants_log([mean for _, _, mean, _ in curves])
    if log:
        axis.set_yscale("log")
    for group, x, mean, deviation in curves:
        lines[group.method] = draw_curve(axis, x, mean, deviation, colour_of(group.method, methods), log)
    if (target := curves[0][0].target) is not None:
        axis.axhline(target, color="#888888", linewidth=0.8, linestyle=(0, (6, 4)))
    style_axis(axis, plain(problem), curves[0][0].axis)
    return lines


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


def style_axis(axis: Any, title: str, xlabel: str) -> None:
    """What all panels of all figures share."""
    axis.set_title(title, fontsize=10)
    axis.set_xlabel(xlabel)
    if axis.get_xscale() == "linear":
        axis.ticklabel_format(axis="x", style="sci", scilimits=(0, 3))
    axis.grid(alpha=0.25, linewidth=0.5)
    axis.spines[["top", "right"]].set_visible(False)
