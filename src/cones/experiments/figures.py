"""Figures in the paper's layout: a panel per problem, a line per method with its name at its end.

The standard deviation is shaded. Where seeds are fewer than five there is no band, and on tasks and there every seed
has a thin line of its own. Seeds that were left at the target end in a dot; a method whose seeds end at very different
times has no mean.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cones.experiments.summary import Group, Summary
from cones.plots.colours import colour_of
from cones.plots.drawing import (
    FEW_SEEDS,
    draw_curve,
    make_log,
    new_figure,
    plain,
    save_figure,
    short_number,
    style_axis,
    wants_log,
)
from cones.plots.labels import label_ends, room_for

__all__ = ["draw_figures", "figures_of", "seeds_shown"]

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
    log = summary.on_tasks and any(_spends_unlike(summary.of(problem)) for problem in problems)
    for name, (column, title) in figures_of(summary).items():
        columns = min(4, len(problems))
        rows = -(-len(problems) // columns)
        figure = new_figure(((2.9 + room_for(methods)) * columns, 2.7 * rows + 0.2))
        axes: Any = figure.subplots(rows, columns, squeeze=False)
        for axis, problem in zip(axes.flat, problems, strict=False):
            _panel(axis, summary, problem, column, methods, log)
        for axis in list(axes.flat)[len(problems) :]:
            axis.set_visible(False)
        for axis in axes[:, 0]:
            axis.set_ylabel(title)
        for ending in ("png", "pdf"):
            path = folder / f"{name}.{ending}"
            save_figure(figure, path)
            written.append(path)
    return written


def _spends_unlike(groups: list[Group]) -> bool:
    """True if one run spends ten times as much as another, as where each is left at its target."""
    ends = np.concatenate([group.ends for group in groups])
    return bool(ends.max() > 10.0 * ends.min())


def _panel(axis: Any, summary: Summary, problem: str, column: str, methods: list[str], log_spent: bool) -> None:
    nothing = np.empty(0)
    groups = summary.of(problem)
    curves = [
        (group, *(group.curve(column) if group.ends_together else (nothing, nothing, nothing))) for group in groups
    ]
    means = [mean for _, _, mean, _ in curves]
    target = groups[0].target
    log = not summary.on_tasks and wants_log(means)
    if log_spent:
        axis.set_xscale("log")
    ends = []
    for group, x, mean, deviation in curves:
        colour = colour_of(group.method, methods)
        seeds = group.seed_curves(column) if seeds_shown(summary, group) else []
        band = deviation if len(group.records) >= FEW_SEEDS and mean.size else None
        draw_curve(axis, x, mean, band, colour, log, seeds)
        if target is not None and column == "mean_reward":
            for when, reward in seeds:
                if reward.size and (reward[-1] >= target > reward[:-1]).all():  # left at the target
                    axis.plot(when[-1], reward[-1], marker="o", markersize=2.5, color=colour)
        if last := [float(y[-1]) for _, y in ([(x, mean)] if mean.size else seeds) if y.size]:
            name = group.method if not mean.size or mean.any() or not log else f"{group.method}: 0"
            ends.append((sum(last) / len(last), plain(name), colour))
    if log:
        make_log(axis, means)
    if target is not None:
        axis.axhline(target, color="#888888", linewidth=0.8, linestyle=(0, (6, 4)))
    style_axis(axis, plain(problem), groups[0].axis)
    if log_spent:
        axis.xaxis.set_major_formatter(short_number)
    label_ends(axis, ends)


def seeds_shown(summary: Summary, group: Group) -> bool:
    """True if each seed has a thin line: where seeds are few, and on tasks: a band says little about two gaits."""
    return len(group.records) > 1 and (summary.on_tasks or len(group.records) < FEW_SEEDS)
