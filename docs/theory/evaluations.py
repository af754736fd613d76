"""The picture of the front page: evaluations to solve nine functions, CoNES beside CMA-ES."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from drawing import Ground, main, panels

from cones.plots.colours import COLOURS

RECORDS = Path(__file__).parents[2] / "results" / "bbob"
DIMENSION, INSTANCES = 10, range(1, 6)
FUNCTIONS = {
    1: "sphere",
    2: "ellipsoid",
    10: "ellipsoid, rotated",
    11: "discus",
    14: "different powers",
    13: "sharp ridge",
    9: "Rosenbrock, rotated",
    8: "Rosenbrock",
    12: "bent cigar",
}
METHODS = {
    "cones": ("cones", COLOURS["CoNES"]),
    "pycma": ("PyCMA", COLOURS["CMA"]),
    "cmaes": ("cmaes", COLOURS["cmaes"]),
}


def evaluations(label: str, dimension: int = DIMENSION) -> dict[int, list[float]]:
    """By function: the evaluations at which each instance was brought to 1e-8; infinite where it never was."""
    runs = json.loads((RECORDS / f"bbob-{dimension:03d}-{label}.json").read_text())["runs"]
    found = {k: [runs[f"f{k}-i{instance}"]["hits"][-1] for instance in INSTANCES] for k in FUNCTIONS}
    return {k: [np.inf if hit is None else float(hit) for hit in hits] for k, hits in found.items()}


def draw(ground: Ground) -> Any:
    figure, (axis,) = panels(ground, (4.7, 3.7))
    places = np.arange(len(FUNCTIONS), dtype=float)[::-1]
    for shift, (label, (name, colour)) in zip((0.24, 0.0, -0.24), METHODS.items(), strict=True):
        hits = np.array(list(evaluations(label).values()))
        middle = np.median(hits, axis=1)
        ends = np.abs(np.array([hits.min(axis=1), hits.max(axis=1)]) - middle)
        style = {"fmt": "o", "markersize": 5, "capsize": 2, "linewidth": 1.3}
        axis.errorbar(middle, places + shift, xerr=ends, color=colour, **style)
        offset = {"cones": (8, 0), "pycma": (-3, 9), "cmaes": (9, -1)}[label]
        at = (middle[0], places[0] + shift)
        axis.annotate(name, at, offset, textcoords="offset points", color=colour, va="center", weight="bold")
    axis.set_xscale("log")
    axis.set_xlim(250, 25_000)
    axis.set_xticks([300, 1000, 3000, 10_000], ["300", "1000", "3000", "10 000"])
    axis.set_xticks([], minor=True)
    axis.set_yticks(places, FUNCTIONS.values(), fontsize=9)
    axis.tick_params(axis="y", length=0)
    for place in places[:-1]:
        axis.axhline(place - 0.5, color=ground.faint, linewidth=0.4, alpha=0.6)
    axis.set_ylim(-0.6, len(FUNCTIONS) - 0.3)
    axis.set_xlabel("evaluations to reach 1e-8 (fewer is better)")
    axis.set_title(f"Nine functions in {DIMENSION} dimensions", loc="left")
    return figure


if __name__ == "__main__":
    main(draw)
