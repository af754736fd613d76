"""The step's length decides which direction is good (the paper's Fig. 1), on a real belief.

The loss of a candidate is an explicit function of one variable; the loss of a belief N(mean, SIGMA^2) is its
expectation, by Gauss-Hermite quadrature.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from drawing import CONES, NES, Ground, arrow, legend, main, panels

SIGMA = 0.2
STEP = 1.6
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)


def candidate_loss(x: Any) -> Any:
    """A narrow dip to the right of 0 on a rising slope, a wide valley to its left."""
    return 0.03 * x**4 + 0.45 * x - 1.1 * np.exp(-1.8 * (x + 1.6) ** 2) - 0.8 * np.exp(-4.0 * (x - 0.45) ** 2)


def belief_loss(mean: Any) -> Any:
    """The expected loss of N(mean, SIGMA^2)."""
    mean = np.asarray(mean, dtype=float)
    return candidate_loss(mean[..., None] + SIGMA * NODES) @ WEIGHTS / np.sqrt(2.0 * np.pi)


def slope(mean: float = 0.0) -> float:
    """The derivative of the expected loss in the mean, by the score function: E[loss(x) (x - mean)] / SIGMA^2."""
    return float(candidate_loss(mean + SIGMA * NODES) @ (WEIGHTS * NODES) / np.sqrt(2.0 * np.pi) / SIGMA)


def draw(ground: Ground) -> Any:
    figure, (axis,) = panels(ground, (6.4, 3.3))
    x = np.linspace(-2.8, 2.4, 400)
    axis.plot(x, candidate_loss(x), color=ground.faint, linewidth=1.0, label=r"loss of a candidate, $\hat{l}(x)$")
    axis.plot(x, belief_loss(x), color=ground.ink, linewidth=1.8, label=r"expected loss of the belief, $l(\mu)$")
    here = float(belief_loss(0.0))
    downhill = -np.sign(slope())
    for side, colour, text, height in (
        (downhill, NES, "down the gradient:\nafter this step the loss is higher", -0.75),
        (-downhill, CONES, "the direction for this step length:\nafter it the loss is lower", 0.2),
    ):
        end = side * STEP
        arrow(axis, (0.0, here), (end, here), colour)
        axis.plot([end, end], [here, belief_loss(end)], color=colour, linewidth=1.2, linestyle=(0, (3, 2)))
        axis.plot(end, belief_loss(end), "o", color=colour, markersize=7)
        axis.text(0.75 * end, here + height, text, color=colour, fontsize=8, ha="center")
    axis.plot(0.0, here, "o", color=ground.ink, markersize=7, zorder=6)
    axis.text(0.0, here - 0.15, r"$\theta$", color=ground.ink, fontsize=12, ha="center", va="top")
    axis.set_xlabel(r"mean $\mu$ of the belief")
    axis.set_ylabel("loss")
    axis.set_ylim(-2.0, 1.9)
    legend(axis, ground, loc="upper left", bbox_to_anchor=(0.02, 1.0))
    return figure


if __name__ == "__main__":
    main(draw)
