"""What the pictures share: grounds to draw on, a narrow form for phones, colours, and files that stay the same."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import matplotlib as mpl

from cones.plots.colours import COLOURS
from cones.plots.drawing import new_figure, save_figure

CONES, NES, ES = COLOURS["CoNES"], COLOURS["NES"], COLOURS["ES"]
GREEN, CYAN = "#228833", "#66ccee"


@dataclass(frozen=True)
class Ground:
    """The colours of text and of what stays behind, on one kind of page; and whether the page is a phone's."""

    ink: str
    faint: str
    paper: str
    narrow: bool = False


GROUNDS = {"light": Ground("#202020", "#999999", "#ffffff"), "dark": Ground("#e6e6e6", "#8a8a8a", "#131416")}


NARROW = 4.4  # inches, so that text of 9 points is 10 pixels high on a phone


def panels(ground: Ground, size: tuple[float, float], count: int = 1, across: int = 4) -> tuple[Any, list[Any]]:
    """A figure with transparent ground and its axes, side by side; below each other on a narrow page."""
    across = 1 if ground.narrow else min(count, across)
    down = -(-count // across)
    if ground.narrow:
        size = (min(size[0], NARROW), size[1] * (down if count <= 4 else 0.55 * down))
    figure = new_figure(size)
    figure.patch.set_alpha(0.0)
    axes = list(figure.subplots(down, across, squeeze=False).flat)
    for axis in axes[count:]:
        axis.set_visible(False)
    for axis in axes:
        axis.patch.set_alpha(0.0)
        axis.tick_params(which="both", colors=ground.ink, labelsize=8)
        for name, spine in axis.spines.items():
            spine.set_color(ground.faint)
            spine.set_visible(name in ("left", "bottom"))
    return figure, axes[:count]


def arrow(axis: Any, start: tuple[float, float], end: tuple[float, float], colour: str, width: float = 2.0) -> None:
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": width, "shrinkA": 0, "shrinkB": 0}
    axis.annotate("", end, start, arrowprops={**style, "mutation_scale": 12}, zorder=5)


def legend(axis: Any, ground: Ground, **settings: Any) -> None:
    if ground.narrow and "ncols" in settings:
        settings["ncols"] = 2
    axis.legend(frameon=False, fontsize=8, labelcolor=ground.ink, **settings)


def write(draw: Callable[[Ground], Any], ground: str, path: str | os.PathLike[str], narrow: bool = False) -> None:
    """Draw and save. The same code gives the same file."""
    ink = GROUNDS[ground].ink
    settings = {
        **{"svg.hashsalt": "cones", "mathtext.fontset": "cm", "axes.titlesize": 10, "axes.labelsize": 9},
        **{"text.color": ink, "axes.labelcolor": ink, "axes.titlecolor": ink},
    }
    with mpl.rc_context(settings):
        save_figure(draw(replace(GROUNDS[ground], narrow=narrow)), path)


def main(draw: Callable[[Ground], Any]) -> None:
    """`python PICTURE.py FILE [--dark] [--narrow]`."""
    parser = argparse.ArgumentParser(description="Draw this picture.")
    parser.add_argument("file", help=".svg, .png or .pdf")
    parser.add_argument("--dark", action="store_true", help="for a dark page")
    parser.add_argument("--narrow", action="store_true", help="for a phone")
    options = parser.parse_args()
    write(draw, "dark" if options.dark else "light", options.file, options.narrow)
