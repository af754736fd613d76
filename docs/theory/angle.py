"""Proposition 1: the angle between the direction of CoNES and the natural gradient goes to zero with epsilon.

Measured in the Fisher metric, at random beliefs with random gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from drawing import CONES, GREEN, Ground, legend, main, panels

import cones
from cones.beliefs import encode

RADII = np.logspace(-3.0, 2.0, 26)
DIM, SEEDS = 5, 20


def random_problem(kind: str, seed: int) -> tuple[Any, cones.Gradient]:
    rng = np.random.default_rng(seed)
    mean, slope = rng.standard_normal((2, DIM))
    if kind == "diagonal":
        return cones.DiagonalGaussian(mean, rng.uniform(0.2, 3.0, DIM)), cones.Gradient(slope, rng.standard_normal(DIM))
    square, other = rng.standard_normal((2, DIM, DIM))
    belief = cones.FullGaussian(mean, square @ square.T / DIM + 0.3 * np.eye(DIM))
    return belief, cones.Gradient(slope, other + other.T)


def in_the_frame(belief: Any, mean: Any, covariance: Any) -> Any:
    """A change of (mean, covariance) as a vector whose Euclidean length is its Fisher length."""
    if np.ndim(covariance) == 1:
        return np.concatenate([mean / belief.deviation, covariance / belief.variance / np.sqrt(2.0)])
    half = np.linalg.solve(belief.factor, np.linalg.solve(belief.factor, covariance).T)
    return np.concatenate([np.linalg.solve(belief.factor, mean), half.ravel() / np.sqrt(2.0)])


def angle(belief: Any, gradient: cones.Gradient, radius: float) -> float:
    """In radians. From the chord of the unit vectors, which is exact where a cosine would round to 1."""
    natural = belief.natural_gradient(gradient)
    new = cones.solve_step(belief, gradient, radius).belief
    change = in_the_frame(belief, new.mean - belief.mean, encode(new, "covariance") - encode(belief, "covariance"))
    along = in_the_frame(belief, natural.mean, natural.covariance)
    chord = np.linalg.norm(change / np.linalg.norm(change) - along / np.linalg.norm(along))
    return float(2.0 * np.arcsin(0.5 * chord))


def angles(kind: str) -> Any:
    """Shape (seeds, radii)."""
    problems = [random_problem(kind, seed) for seed in range(SEEDS)]
    return np.array([[angle(*problem, radius) for radius in RADII] for problem in problems])


def draw(ground: Ground) -> Any:
    figure, (axis,) = panels(ground, (6.0, 3.4))
    for kind, colour in (("diagonal", CONES), ("full", GREEN)):
        degrees = np.degrees(angles(kind))
        axis.fill_between(RADII, degrees.min(axis=0), degrees.max(axis=0), color=colour, alpha=0.2, linewidth=0)
        axis.plot(RADII, np.median(degrees, axis=0), color=colour, linewidth=1.6, label=f"{kind} covariance")
    axis.plot(
        RADII[:16], 40.0 * RADII[:16], color=ground.faint, linestyle=(0, (4, 2)), label=r"proportional to $\epsilon$"
    )
    axis.axhline(90.0, color=ground.faint, linewidth=0.6)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel(r"radius $\epsilon$")
    axis.set_ylabel("angle to the natural\ngradient, degrees")
    legend(axis, ground, loc="lower right")
    return figure


if __name__ == "__main__":
    main(draw)
