"""The picture of wrong spreads and noise: the loss at the end under five conditions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from drawing import Ground, legend, main, panels
from matplotlib.ticker import LogLocator

from cones.plots.colours import COLOURS

TABLE = Path(__file__).parents[2] / "results" / "robustness" / "tables.md"
FUNCTIONS = ("Sphere", "Ellipsoid", "Ackley", "Rastrigin")
CONDITIONS = {
    "": "as it should be",
    " sigma 0.1": "spread a tenth",
    " sigma 10": "spread tenfold",
    " noise 10%": "noise 10%",
    " noise 100%": "noise 100%",
}
METHODS = {
    "CoNES adaptive": ("cones, adaptive radii", COLOURS["CoNES"], "o"),
    "CoNES paper": ("CoNES, the paper's setting", COLOURS["CoNES paper"], "x"),
}
ROW = re.compile(r"\| (\w+) \+3(.*?), 1000-D \| (.+?) \| \d+ \| [\d,]+ \| (\S+) ± (\S+) \|")


def losses() -> dict[tuple[str, str, str], tuple[float, float]]:
    """By function, condition and method: mean loss of the last population and its standard deviation over seeds."""
    rows = ROW.findall(TABLE.read_text().replace("**", ""))
    return {tuple(where): (float(mean), float(deviation)) for *where, mean, deviation in rows}  # type: ignore[misc]


def draw(ground: Ground) -> Any:
    figure, axes = panels(ground, (8.6, 3.0), 4)
    table = losses()
    places = np.arange(len(CONDITIONS), dtype=float)[::-1]
    for axis, function in zip(axes, FUNCTIONS, strict=True):
        for shift, (method, (name, colour, marker)) in zip((0.12, -0.12), METHODS.items(), strict=True):
            mean, deviation = np.array([table[function, condition, method] for condition in CONDITIONS]).T
            style = {"fmt": marker, "markersize": 5, "linewidth": 1.2, "label": name}
            axis.errorbar(mean, places + shift, xerr=np.minimum(deviation, 0.9 * mean), color=colour, **style)
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(LogLocator(numticks=5))
        axis.set_title(function)
        beside = ground.narrow or axis is axes[0]
        axis.set_yticks(places, CONDITIONS.values() if beside else [""] * len(places), fontsize=9)
        axis.tick_params(axis="y", length=0)
        axis.set_ylim(-0.6, len(CONDITIONS) - 0.4)
        axis.grid(axis="y", color=ground.faint, linewidth=0.4, alpha=0.4)
        axis.minorticks_off()
    figure.supxlabel("loss after 100 000 evaluations (less is better)", fontsize=9, color=ground.ink)
    handles, texts = axes[0].get_legend_handles_labels()
    legend(figure, ground, handles=handles, labels=texts, loc="outside upper center", ncols=2)
    return figure


if __name__ == "__main__":
    main(draw)
