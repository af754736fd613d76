"""The panels of a figure, and the curves in them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cones.errors import InputError
from cones.plots.averages import mean_curve, measured
from cones.plots.colours import colour_of
from cones.plots.curves import Columns, Group
from cones.plots.drawing import FEW_SEEDS, draw_curve, make_log, new_figure, plain, style_axis, wants_log
from cones.plots.labels import label_ends, room_for
from cones.types import Vector

__all__ = ["PANELS", "draw"]

# How the columns of one panel are told apart; runs are told apart by colour.
LINES = ("solid", (0, (4, 2)), (0, (1, 1.5)))
GREYS = ("#555555", "#999999")  # of the other columns, where there is one run
MOST = 4  # panels: what a reader looks for first


@dataclass(frozen=True)
class Panel:
    """A title, and the columns of the panel with their names in its legend."""

    title: str
    columns: dict[str, str] = field(default_factory=dict)


# In the order in which they are looked for.
PANELS = (
    Panel("loss", {"mean_loss": "population", "best": "best so far"}),
    Panel("reward", {"mean_reward": "mean policy", "population_reward": "population"}),
    Panel("spread", {"spread": ""}),
    Panel("step length", {"step": ""}),
    Panel("radius", {"radius": ""}),
    Panel("radii", {"mean_radius": "mean", "scale_radius": "scale", "shape_radius": "shape"}),
    Panel("KL(new || old)", {"kl": ""}),
)


def draw(groups: list[Group], x: str | None, title: str = "", to_show: bool = False) -> Any:
    """Draw the first four panels that the runs have; with `to_show`, in a figure that `plt.show()` shows."""
    everything = [(group.label, columns) for group in groups for columns in group.seeds]
    if x is None:
        x = "timesteps" if all("timesteps" in columns for _, columns in everything) else "evaluations"
    if lacking := [label for label, columns in everything if x not in columns]:
        raise InputError(f"x: expected an axis that all runs have; {lacking[0]} has no {x}")
    panels = [panel for panel in PANELS if any(_has(columns, panel) for _, columns in everything)][:MOST]
    if not panels:
        known = ", ".join(column for panel in PANELS for column in panel.columns)
        raise InputError(f"runs: expected at least one of the columns {known}")
    # Of several problems each is a row, so that each has its own axes.
    on = list(dict.fromkeys(group.on for group in groups))
    across = len(panels) if len(on) > 1 or len(panels) < MOST else MOST // 2
    down = len(on) if len(on) > 1 else -(-len(panels) // across)
    labels = list(dict.fromkeys(group.label for group in groups))
    width = 2.9 + room_for([*labels, *panels[0].columns.values()] if len(labels) == 1 else labels)
    figure = _figure((width * across, 2.3 * down + 0.2), to_show)
    axes = list(figure.subplots(down, across, squeeze=False).flat)
    for row, problem in enumerate(on):
        here = [group for group in groups if group.on == problem]
        for axis, panel in zip(axes[row * across :], panels, strict=False):
            style_axis(axis, plain(f"{problem}: {panel.title}" if len(on) > 1 and problem else panel.title), x)
            _draw_panel(axis, panel, here, labels, x)
    for axis in axes[len(on) * len(panels) :]:
        axis.set_visible(False)
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


@dataclass(frozen=True)
class Curve:
    """A line of a panel: one column of one group, its mean over seeds and the seeds themselves."""

    column: str
    label: str
    x: Vector
    mean: Vector
    deviation: Vector | None = None
    seeds: tuple[tuple[Vector, Vector], ...] = ()


def _curves(panel: Panel, groups: list[Group], x: str) -> Iterator[Curve]:
    for name in panel.columns:
        for group in groups:
            lines = [measured(seed[x], seed[name]) for seed in group.seeds if name in seed]
            lines = [line for line in lines if line[0].size]
            if not lines:
                continue
            places, mean, deviation = mean_curve(lines)
            if not places.size:  # the seeds have nothing in common that could be averaged
                yield from (Curve(name, group.label, *line) for line in lines)
            elif len(lines) < FEW_SEEDS:
                yield Curve(name, group.label, places, mean, None, tuple(lines) if len(lines) > 1 else ())
            else:
                yield Curve(name, group.label, places, mean, deviation)


def _draw_panel(axis: Any, panel: Panel, groups: list[Group], labels: list[str], x: str) -> None:
    """Draw a panel. Of several runs each has its colour, of one run each column. Names stand at the right.

    A single run without a label of its own needs no name.
    """
    curves = list(_curves(panel, groups, x))
    if not curves:
        axis.set_visible(False)
        return
    means = [curve.mean for curve in curves]
    log = "reward" not in panel.title and wants_log(means)
    drawn = [name for name in panel.columns if any(curve.column == name for curve in curves)]
    alone = len(labels) == 1
    ends: dict[str, tuple[float, str, str]] = {}
    for curve in curves:
        place = drawn.index(curve.column)
        colour = colour_of(groups[0].method or curve.label if alone else curve.label, labels)
        if alone:
            colour = (colour, *GREYS)[place]
        first = place == 0 or (alone and panel.title == "radii")
        style = {"linestyle": LINES[place], "linewidth": 1.4 if place == 0 or alone else 1.0}
        band, seeds = (curve.deviation, curve.seeds) if first else (None, ())  # two bands would hide each other
        draw_curve(axis, curve.x, curve.mean, band, colour, log, seeds, **style)
        text = panel.columns[curve.column] if alone and len(panel.columns) > 1 else curve.label if place == 0 else ""
        if text and not (alone and text in ("run 1", groups[0].method)):
            ends[text] = (float(curve.mean[-1]), plain(text), colour)
    if log:
        make_log(axis, means)
    label_ends(axis, list(ends.values()))
    if len(drawn) > 1 and not alone:
        grey = [axis.plot([], [], color="#777777", linestyle=LINES[place])[0] for place in range(len(drawn))]
        axis.legend(grey, [panel.columns[name] for name in drawn], frameon=False, fontsize=8)
