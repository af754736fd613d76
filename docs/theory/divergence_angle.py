"""The angle between the steps in the balls of the divergences and the natural gradient, against their size.

In the Fisher metric, at random beliefs with random gradients. It goes to zero for all of them: the Hessian of every
f-divergence is a multiple of Fisher's information. Sizes are those of KL; D <= curvature epsilon^2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from angle import in_the_frame, random_problem
from drawing import CONES, CYAN, ES, GREEN, NES, Ground, legend, main, panels

import cones
from cones.beliefs import encode
from cones.component import component_from

SIZES = np.logspace(-3.0, 0.0, 13)
SEEDS = 5
SHOWN = {
    ("kl", "covariance"): ("KL(P' ‖ P)", CONES, "-"),
    ("reverse_kl", "covariance"): ("KL(P ‖ P')", NES, "-"),
    ("hellinger", "covariance"): ("Hellinger²", GREEN, "-"),
    ("chi2", "covariance"): ("χ²", ES, "-"),
    ("renyi:0.2", "covariance"): (r"Rényi, $\alpha = 0.2$", CYAN, "-"),
    ("kl", "mean_parameters"): ("KL(P' ‖ P), mean parameters", CONES, (0, (4, 2))),
    ("reverse_kl", "natural_parameters"): ("KL(P ‖ P'), natural parameters", NES, (0, (4, 2))),
}


def angle(belief: Any, gradient: cones.Gradient, size: float, name: str, chart: Any) -> float:
    """In radians, from the chord of the unit vectors."""
    radius = math.sqrt(component_from("divergence", name).curvature) * size
    new = cones.solve_step(belief, gradient, radius, divergence=name, chart=chart).belief
    natural = belief.natural_gradient(gradient)
    change = in_the_frame(belief, new.mean - belief.mean, encode(new, "covariance") - encode(belief, "covariance"))
    along = in_the_frame(belief, natural.mean, natural.covariance)
    chord = np.linalg.norm(change / np.linalg.norm(change) - along / np.linalg.norm(along))
    return float(2.0 * np.arcsin(0.5 * chord))


def angles(name: str, chart: str) -> Any:
    """The median over problems, one for each size."""
    problems = [random_problem("full", seed) for seed in range(SEEDS)]
    return np.median([[angle(*problem, size, name, chart) for size in SIZES] for problem in problems], axis=0)


def draw(ground: Ground) -> Any:
    figure, (axis,) = panels(ground, (6.6, 3.8))
    for (name, chart), (text, colour, style) in SHOWN.items():
        axis.plot(SIZES, np.degrees(angles(name, chart)), color=colour, linestyle=style, linewidth=1.4, label=text)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel(r"size of the ball $\epsilon$")
    axis.set_ylabel("angle to the natural\ngradient, degrees")
    legend(axis, ground, loc="lower right")
    return figure


if __name__ == "__main__":
    main(draw)
