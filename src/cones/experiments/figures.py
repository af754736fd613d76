"""Figures in the paper's layout: a panel per problem, a line per method, the standard deviation shaded.

On tasks every seed has a thin line of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cones.experiments.summary import Summary
from cones.plots.drawing import (
    colour_of,
    draw_curve,
    legend_below,
    new_figure,
    plain,
    save_figure,
    style_axis,
    wants_log,
)

__all__ = ["draw_figures", "figures_of"]

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


def _panel(axis: Any, summary: Summary, problem: str, column: str, methods: list[str]) -> dict[str, Any]:
    lines = {}
    curves = [(group, *group.curve(column)) for group in summary.of(problem)]
    log = not summary.on_tasks and wants_log([mean for _, _, mean, _ in curves])
    if log:
        axis.set_yscale("log")
    for group, x, mean, deviation in curves:
        if summary.on_tasks and len(group.records) > 1:
            for seed in group.seed_curves(column):  # thin: a band says little about two gaits
                axis.plot(*seed, color=colour_of(group.method, methods), linewidth=0.5, alpha=0.5)
        lines[group.method] = draw_curve(axis, x, mean, deviation, colour_of(group.method, methods), log)
    if (target := curves[0][0].target) is not None:
        axis.axhline(target, color="#888888", linewidth=0.8, linestyle=(0, (6, 4)))
    style_axis(axis, plain(problem), curves[0][0].axis)
    return lines
