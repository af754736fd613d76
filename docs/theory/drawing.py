"""What the pictures share: two grounds to draw on, the project's colours, files that do not change from run to run."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl

from cones.plots.colours import COLOURS
from cones.plots.drawing import new_figure, save_figure

CONES, NES, ES = COLOURS["CoNES"], COLOURS["NES"], COLOURS["ES"]
GREEN, CYAN = "#228833", "#66ccee"


@dataclass(frozen=True)
class Ground:
    """The colours of text and of what stays behind, on one kind of page."""

    ink: str
    faint: str
    paper: str


GROUNDS = {"light": Ground("#202020", "#999999", "#ffffff"), "dark": Ground("#e6e6e6", "#8a8a8a", "#131416")}


def panels(ground: Ground, size: tuple[float, float], columns: int = 1) -> tuple[Any, list[Any]]:
    """A figure with transparent ground and its axes, side by side."""
    figure = new_figure(size)
    figure.patch.set_alpha(0.0)
    axes = list(figure.subplots(1, columns, squeeze=False).flat)
    for axis in axes:
        axis.patch.set_alpha(0.0)
        axis.tick_params(which="both", colors=ground.ink, labelsize=8)
        for name, spine in axis.spines.items():
            spine.set_color(ground.faint)
            spine.set_visible(name in ("left", "bottom"))
    return figure, axes


def arrow(axis: Any, start: tuple[float, float], end: tuple[float, float], colour: str, width: float = 2.0) -> None:
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": width, "shrinkA": 0, "shrinkB": 0}
    axis.annotate("", end, start, arrowprops={**style, "mutation_scale": 12}, zorder=5)


def legend(axis: Any, ground: Ground, **settings: Any) -> None:
    axis.legend(frameon=False, fontsize=8, labelcolor=ground.ink, **settings)


def write(draw: Callable[[Ground], Any], ground: str, path: str | os.PathLike[str]) -> None:
    """Draw and save. The same code gives the same file."""
    ink = GROUNDS[ground].ink
    settings = {
        **{"svg.hashsalt": "cones", "mathtext.fontset": "cm", "axes.titlesize": 10, "axes.labelsize": 9},
        **{"text.color": ink, "axes.labelcolor": ink, "axes.titlecolor": ink},
    }
    with mpl.rc_context(settings):
        save_figure(draw(GROUNDS[ground]), path)


def main(draw: Callable[[Ground], Any]) -> None:
    """`python PICTURE.py FILE [--dark]`."""
    parser = argparse.ArgumentParser(description="Draw this picture.")
    parser.add_argument("file", help=".svg, .png or .pdf")
    parser.add_argument("--dark", action="store_true", help="for a dark page")
    options = parser.parse_args()
    write(draw, "dark" if options.dark else "light", options.file)
