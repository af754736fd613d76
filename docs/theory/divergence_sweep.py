"""What another divergence does to a run: the loss after 10 000 evaluations, or the reward, by the size of the ball.

From the records in results/divergences: the paper's four functions in 1000 dimensions, shifted. The step is taken as it
is, or, as in the paper, given to Adam. From results/divergences-swimmer: linear policies on Swimmer, with Adam.
Points are medians over the seeds that every method has finished, bars reach from the lowest to the highest seed.
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from drawing import CONES, ES, GREEN, NES, Ground, legend, main, panels

from cones.records import Folder, Record

RESULTS = Path(__file__).parents[2] / "results"
FUNCTIONS = ("sphere", "rosenbrock", "rastrigin", "lunacek")
SIZES, WITH_ADAM = (1.0, 3.0, 10.0), 45.0
SHOWN = {
    "KL": ("KL(P' ‖ P)", CONES),
    "reverse KL": ("KL(P ‖ P')", NES),
    "Renyi 1/2": ("Hellinger² (Rényi 1/2)", GREEN),
    "Renyi 2": ("χ² (Rényi 2)", ES),
}
TOP = 2.0  # losses above are shown there


@cache
def complete(folder: str) -> dict[tuple[str, str], dict[int, Record]]:
    """By problem and label: the records of the seeds that every method has finished on every problem."""
    found: dict[tuple[str, str], dict[int, Record]] = {}
    for record in Folder(RESULTS / folder).records():
        run = record.run
        of = found.setdefault((run["problem"]["problem"] if "problem" in run else "swimmer", run["label"]), {})
        if record.finished:
            of[int(run["seed"])] = record
    whole = set.intersection(*(set(records) for records in found.values()))
    return {key: {seed: records[seed] for seed in sorted(whole)} for key, records in found.items()}


def seeds(folder: str) -> int:
    return len(next(iter(complete(folder).values())))


def left_over(function: str, divergence: str, size: float) -> list[float]:
    """The mean loss of the last population over that of the first, by seed."""
    label = f"{divergence}, {size:g}" + (", Adam" if size == WITH_ADAM else "")
    losses = [record.columns["mean_loss"] for record in complete("divergences")[function, label].values()]
    return [float(values[-1] / values[0]) for values in losses]


def rewards(divergence: str, size: float) -> list[float]:
    """The reward of the mean policy at the end, by seed."""
    records = complete("divergences-swimmer")["swimmer", f"{divergence}, {size:g}"].values()
    return [float(record.columns["mean_reward"][-1]) for record in records]


def swept(axis: Any, found: dict[float, list[float]], colour: str, text: str, top: float = math.inf) -> None:
    """Medians over seeds against the size, and what the seeds span; medians above `top` are triangles there."""
    joined = [size for size in found if size != WITH_ADAM]
    middle = {size: min(median(each), top) for size, each in found.items()}
    axis.plot(joined, [middle[size] for size in joined], "o-", color=colour, linewidth=1.4, markersize=3, label=text)
    for size, each in found.items():
        if size == WITH_ADAM:
            axis.plot(size, middle[size], "D", color=colour, markersize=4, alpha=0.8)
        axis.plot([size, size], [min(min(each), top), min(max(each), top)], color=colour, linewidth=2.5, alpha=0.35)
        if median(each) > top:
            axis.plot(size, top, "^", color=colour, markersize=7, clip_on=False)


def draw(ground: Ground) -> Any:
    figure, axes = panels(ground, (8.6, 5.6), 5, across=3)
    for divergence, (text, colour) in SHOWN.items():
        for axis, function in zip(axes, FUNCTIONS, strict=False):
            found = {size: left_over(function, divergence, size) for size in (*SIZES, WITH_ADAM)}
            swept(axis, found, colour, text, TOP)
        swept(axes[-1], {size: rewards(divergence, size) for size in SIZES}, colour, text)
    for axis, function in zip(axes, (*FUNCTIONS, "swimmer"), strict=True):
        axis.set_xscale("log")
        axis.set_title(function)
        axis.set_xlabel("size of the ball")
    for axis in axes[:-1]:
        axis.set_yscale("log")
        axis.set_ylim(0.01, TOP)
        axis.set_xticks([1, 3, 10, 45], ["1", "3", "10", "45,\nAdam"])
    axes[-1].set_xticks(list(SIZES), [f"{size:g}" for size in SIZES])
    axes[-1].set_title("swimmer, Adam" + (", 1 seed" if seeds("divergences-swimmer") == 1 else ""))
    axes[-1].set_ylabel("reward of the mean policy")
    for axis in axes:
        axis.minorticks_off()
    for axis in axes[:-1] if ground.narrow else (axes[0], axes[3]):
        axis.set_ylabel("loss at the end / at the start")
    handles, texts = axes[0].get_legend_handles_labels()
    legend(figure, ground, handles=handles, labels=texts, loc="outside lower center", ncols=4)
    return figure


if __name__ == "__main__":
    main(draw)
