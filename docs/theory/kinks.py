"""The picture of losses with kinks: how far each method ends above the minimum, over that of cones."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from drawing import Ground, legend, main, panels

from cones.plots.colours import COLOURS

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))  # for benchmarks/, which is beside docs/
from benchmarks.kinks import gaps  # noqa: E402

FOLDERS = ("kinks", "kinks-many")
FUNCTIONS = {
    "Max-Norm": "max-norm",
    "L1-Norm": "L1",
    "L1-Norm rotated 1": "L1, rotated",
    "Weighted-L1 rotated 1": "weighted L1, rotated",
    "Total-Variation": "total variation",
}
METHODS = {
    "CoNES": ("cones", COLOURS["CoNES"], "o"),
    "CMA": ("PyCMA", COLOURS["CMA"], "s"),
    "SepCMA": ("SepCMA of cmaes", COLOURS["SepCMA"], "D"),
    "NES": ("NES", COLOURS["NES"], "^"),
}
DIMENSIONS = (30, 50, 80, 100)


@cache
def ratios() -> dict[tuple[str, int, str], np.ndarray]:
    """By function, dimension and method: best loss - minimum of each seed, over the median of cones."""
    found = {problem: by for folder in FOLDERS for problem, by in gaps(ROOT / "results" / folder).items()}
    return {
        (function, n, method): np.array(found[f"{function}, {n}-D"][method])
        / np.median(found[f"{function}, {n}-D"]["CoNES"])
        for function in FUNCTIONS
        for n in DIMENSIONS
        for method in METHODS
    }


def draw(ground: Ground) -> Any:
    figure, axes = panels(ground, (8.6, 3.6), 4)
    places = np.arange(len(FUNCTIONS), dtype=float)[::-1]
    for axis, n in zip(axes, DIMENSIONS, strict=True):
        for shift, (method, (name, colour, marker)) in zip((0.27, 0.09, -0.09, -0.27), METHODS.items(), strict=True):
            seeds = np.array([ratios()[function, n, method] for function in FUNCTIONS])
            middle = np.median(seeds, axis=1)
            ends = np.abs(np.array([seeds.min(axis=1), seeds.max(axis=1)]) - middle)
            style = {"fmt": marker, "markersize": 4, "linewidth": 1.1, "label": name}
            axis.errorbar(middle, places + shift, xerr=ends, color=colour, **style)
        axis.axvline(1.0, color=ground.faint, linewidth=0.8, zorder=0)
        axis.set_xscale("log")
        axis.set_title(f"{n} dimensions")
        beside = ground.narrow or axis is axes[0]
        axis.set_yticks(places, FUNCTIONS.values() if beside else [""] * len(places), fontsize=9)
        axis.tick_params(axis="y", length=0)
        for place in places[:-1]:
            axis.axhline(place - 0.5, color=ground.faint, linewidth=0.4, alpha=0.6)
        axis.set_ylim(-0.6, len(FUNCTIONS) - 0.4)
        axis.minorticks_off()
    figure.supxlabel("best loss above the minimum, over that of cones", fontsize=9, color=ground.ink)
    handles, texts = axes[0].get_legend_handles_labels()
    legend(figure, ground, handles=handles, labels=texts, loc="outside upper center", ncols=4)
    return figure


if __name__ == "__main__":
    main(draw)
