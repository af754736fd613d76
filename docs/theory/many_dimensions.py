"""The picture of many dimensions: the loss that each method ends at in 5000 dimensions, over that of cones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from drawing import Ground, legend, main, panels

from cones.plots.colours import COLOURS

TABLE = Path(__file__).parents[2] / "results" / "adaptive" / "tables.md"
FUNCTIONS = ("Rosenbrock", "Lunacek", "Sphere +3", "Rastrigin +3", "Ellipsoid +3", "Ackley +3")
METHODS = {
    "CoNES adaptive": ("cones, adaptive radii", COLOURS["CoNES"], "o"),
    "PyCMA diagonal": ("PyCMA, diagonal", COLOURS["PyCMA diagonal"], "s"),
    "SepCMA": ("SepCMA of cmaes", COLOURS["SepCMA"], "D"),
    "CoNES paper": ("CoNES, the paper's setting", COLOURS["CoNES paper"], "x"),
    "NES": ("NES", COLOURS["NES"], "^"),
    "ES": ("ES", COLOURS["ES"], "v"),
}
ROW = re.compile(r"\| (.+?), 5000-D \| (.+?) \| \d+ \| [\d,]+ \| (\S+) ± (\S+) \|")


def losses() -> dict[tuple[str, str], tuple[float, float]]:
    """By function and method: mean loss of the last population and its standard deviation over seeds."""
    rows = ROW.findall(TABLE.read_text().replace("**", ""))
    return {(function, method): (float(mean), float(deviation)) for function, method, mean, deviation in rows}


def draw(ground: Ground) -> Any:
    figure, (axis,) = panels(ground, (5.6, 4.2))
    table = losses()
    places = np.arange(len(FUNCTIONS), dtype=float)[::-1]
    shifts = np.linspace(0.3, -0.3, len(METHODS))
    for shift, (method, (name, colour, marker)) in zip(shifts, METHODS.items(), strict=True):
        unit = np.array([table[function, "CoNES adaptive"][0] for function in FUNCTIONS])
        mean, deviation = np.array([table[function, method] for function in FUNCTIONS]).T / unit
        style = {"fmt": marker, "markersize": 5, "capsize": 2, "linewidth": 1.2, "label": name}
        axis.errorbar(mean, places + shift, xerr=deviation, color=colour, **style)
    axis.axvline(1.0, color=ground.faint, linewidth=0.8, zorder=0)
    axis.set_xscale("log")
    axis.set_yticks(places, FUNCTIONS, fontsize=9)
    axis.tick_params(axis="y", length=0)
    for place in places[:-1]:
        axis.axhline(place - 0.5, color=ground.faint, linewidth=0.4, alpha=0.6)
    axis.set_ylim(-0.6, len(FUNCTIONS) - 0.4)
    axis.set_xlabel("loss after 100 000 evaluations, over that of cones")
    axis.set_title("Six functions in 5000 dimensions", loc="left")
    legend(axis, ground, loc="upper right", bbox_to_anchor=(1.0, 1.0))
    return figure


if __name__ == "__main__":
    main(draw)
