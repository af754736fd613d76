"""What another divergence does to a run: the loss after 10 000 evaluations against the size of the ball.

From the records in results/divergences: the paper's four functions in 1000 dimensions, shifted. The step is taken as it
is, or, as in the paper, given to Adam.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from drawing import CONES, ES, GREEN, NES, Ground, legend, main, panels

from cones.records import read_record

RUNS = Path(__file__).parents[2] / "results" / "divergences" / "runs"
FUNCTIONS = ("sphere", "rosenbrock", "rastrigin", "lunacek")
SIZES, WITH_ADAM = (1.0, 3.0, 10.0), 45.0
SHOWN = {
    "kl": ("KL(P' ‖ P)", CONES),
    "reverse-kl": ("KL(P ‖ P')", NES),
    "renyi-1-2": ("Hellinger² (Rényi 1/2)", GREEN),
    "renyi-2": ("χ² (Rényi 2)", ES),
}
TOP = 2.0  # losses above are shown there


def left_over(function: str, divergence: str, size: float) -> float:
    """The mean loss of the last population over that of the first."""
    ending = "-adam" if size == WITH_ADAM else ""
    record = read_record(RUNS / f"{function}-+3-1000-d-{divergence}-{size:g}{ending}-seed-0.json.gz")
    losses = record.columns["mean_loss"]
    return float(losses[-1] / losses[0])


def draw(ground: Ground) -> Any:
    figure, axes = panels(ground, (8.6, 3.2), 4)
    for axis, function in zip(axes, FUNCTIONS, strict=True):
        for divergence, (text, colour) in SHOWN.items():
            found = [left_over(function, divergence, size) for size in (*SIZES, WITH_ADAM)]
            shown = [min(value, TOP) for value in found]
            axis.plot(SIZES, shown[:-1], color=colour, linewidth=1.4, marker="o", markersize=3, label=text)
            axis.plot(WITH_ADAM, shown[-1], "D", color=colour, markersize=4, alpha=0.8)
            for size, value in zip((*SIZES, WITH_ADAM), found, strict=True):
                if value > TOP:
                    axis.plot(size, TOP, "^", color=colour, markersize=7, clip_on=False)
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_ylim(0.01, TOP)
        axis.set_xticks([1, 3, 10, 45], ["1", "3", "10", "45,\nAdam"])
        axis.minorticks_off()
        axis.set_title(function)
        axis.set_xlabel("size of the ball")
    axes[0].set_ylabel("loss at the end / at the start")
    handles, texts = axes[0].get_legend_handles_labels()
    legend(figure, ground, handles=handles, labels=texts, loc="outside lower center", ncols=4)
    return figure


if __name__ == "__main__":
    main(draw)
