"""The panels of a figure, and the curves in them."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cones.errors import InputError
from cones.plots.averages import mean_curve, measured
from cones.plots.curves import Columns, Group
from cones.plots.drawing import colour_of, draw_curve, legend_below, new_figure, plain, style_axis, wants_log
from cones.types import Vector

__all__ = ["PANELS", "draw"]

# How the columns of one panel are told apart; runs are told apart by colour.
LINES = ("solid", (0, (4, 2)), (0, (1, 1.5)))


@dataclass(frozen=True)
class Panel:
    """A title, and the columns of the panel with their names in its legend."""

    title: str
    columns: dict[str, str] = field(default_factory=dict)


PANELS = (
    Panel("loss", {"mean_loss": "mean of the population", "best": "best so far"}),
    Panel("reward", {"mean_reward": "mean policy", "population_reward": "population"}),
    Panel("spread", {"spread": ""}),
    Panel("step length", {"step": ""}),
    Panel("radius", {"radius": ""}),
    Panel("radii", {"mean_radius": "mean", "scale_radius": "scale", "shape_radius": "shape"}),
    Panel("path length", {"path_length": ""}),
    Panel("KL(new || old)", {"kl": ""}),
)


def draw(groups: list[Group], x: str | None, title: str = "", to_show: bool = False) -> Any:
    """Draw a panel for every quantity that a run has; with `to_show`, in a figure that `plt.show()` shows."""
    everything = [(group.label, columns) for group in groups for columns in group.seeds]
    if x is None:
        x = "timesteps" if all("timesteps" in columns for _, columns in everything) else "evaluations"
    if lacking := [label for label, columns in everything if x not in columns]:
        raise InputError(f"x: expected an axis that all runs have; {lacking[0]} has no {x}")
    panels = [panel for panel in PANELS if any(_has(columns, panel) for _, columns in everything)]
    if not panels:
        known = ", ".join(column for panel in PANELS for column in panel.columns)
        raise InputError(f"runs: expected at least one of the columns {known}")
    # Several problems are rows, so that each has its own axes; else the panels are set as they fit.
    on = list(dict.fromkeys(group.on for group in groups))
    across = len(panels) if len(on) > 1 else 2 if len(panels) == 4 else min(3, len(panels))
    down = len(on) if len(on) > 1 else -(-len(panels) // across)
    figure = _figure((3.6 * across, 2.7 * down + 0.4), to_show)
    axes = list(figure.subplots(down, across, squeeze=False).flat)
    labels = list(dict.fromkeys(group.label for group in groups))
    shown: dict[str, Any] = {}
    for row, problem in enumerate(on):
        here = [group for group in groups if group.on == problem]
        for axis, panel in zip(axes[row * across :], panels, strict=False):
            shown = _draw_panel(axis, panel, here, labels, x) | shown
            style_axis(axis, plain(f"{problem}: {panel.title}" if len(on) > 1 and problem else panel.title), x)
    for axis in axes[len(on) * len(panels) :]:
        axis.set_visible(False)
    names = [label for label in labels if label in shown]
    if len(names) > 1 or not names[0].startswith("run "):
        legend_below(figure, {name: shown[name] for name in names}, across)
    if title:
        figure.suptitle(plain(title))
    return figure


def _figure(size: tuple[float, float], to_show: bool) -> Any:
    """A figure of pyplot if it is in use and is to show it; else a figure of its own."""
    figure = new_figure(size)  # says what is missing, if matplotlib is
    pyplot = sys.modules.get("matplotlib.pyplot") if to_show else None
    return figure if pyplot is None else pyplot.figure(figsize=size, layout="constrained")


def _has(columns: Columns, panel: Panel) -> bool:
    return any(name in columns and np.isfinite(columns[name]).any() for name in panel.columns)


def _draw_panel(axis: Any, panel: Panel, groups: list[Group], labels: list[str], x: str) -> dict[str, Any]:
    """Draw a panel. Returns the first line of each label, for the legend."""
    curves: list[tuple[str, str, Vector, Vector, Vector | None]] = []
    for name in panel.columns:
        for group in groups:
            lines = [measured(seed[x], seed[name]) for seed in group.seeds if name in seed]
            lines = [line for line in lines if line[0].size]
            if not lines:
                continue
            places, mean, deviation = mean_curve(lines)
            if places.size:
                curves.append((name, group.label, places, mean, deviation if len(lines) > 1 else None))
            else:  # the seeds have nothing in common that could be averaged
                curves += [(name, group.label, *line, None) for line in lines]
    if not curves:
        axis.set_visible(False)
        return {}
    log = "reward" not in panel.title and wants_log([curve[3] for curve in curves])
    if log:
        axis.set_yscale("log")
    drawn = [name for name in panel.columns if any(curve[0] == name for curve in curves)]
    shown: dict[str, Any] = {}
    for name, label, places, mean, spread in curves:
        style = {"linestyle": LINES[drawn.index(name)], "linewidth": 1.4 if name == drawn[0] else 1.0}
        band = spread if name == drawn[0] or panel.title == "radii" else None  # two bands would hide each other
        line = draw_curve(axis, places, mean, band, colour_of(label, labels), log, **style)
        shown.setdefault(label, line)
    if len(drawn) > 1:
        grey = [axis.plot([], [], color="#777777", linestyle=LINES[place])[0] for place in range(len(drawn))]
        axis.legend(grey, [panel.columns[name] for name in drawn], frameon=False, fontsize=8)
    return shown
