"""The KL ball around a belief over three choices, on the triangle of their probabilities.

The boundaries of KL <= epsilon^2 for several radii, where CoNES goes, p' proportional to p exp(g / lambda), and the ray
of the natural gradient, which leaves the triangle.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from drawing import CONES, NES, Ground, legend, main, panels

import cones

START = cones.Categorical([0.5, 0.35, 0.15], margin=0.0)
GRADIENT = np.array([0.0, 0.4, 1.0])
RADII = (0.15, 0.4, 0.8, 1.2)
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])


def kl(p: Any) -> Any:
    """KL( p || start ), for points in the last axis."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p > 0.0, p * np.log(p / START.mean), 0.0).sum(axis=-1)


def step(radius: float) -> Any:
    """The probabilities to which the convex program goes."""
    return cones.solve_step(START, GRADIENT, radius).belief.mean


def natural_direction() -> Any:
    """The natural gradient as a change of the probabilities: Cov(x) g."""
    return START.covariance_times(GRADIENT)


def boundary(radius: float, count: int = 240) -> Any:
    """The boundary of the ball, or of the triangle where the ball is larger, along rays from the start."""
    points = []
    for turn in np.linspace(0.0, 2.0 * np.pi, count):
        ray = np.cos(turn) * np.array([1.0, -1.0, 0.0]) + np.sin(turn) * np.array([0.5, 0.5, -1.0])
        high = float(np.min(np.where(ray < 0.0, START.mean / np.maximum(-ray, 1e-300), np.inf)))
        low = 0.0
        for _ in range(50):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if kl(START.mean + middle * ray) <= radius**2 else (low, middle)
        points.append(START.mean + low * ray)
    return np.array(points)


def draw(ground: Ground) -> Any:
    figure, (axis,) = panels(ground, (5.4, 4.2))
    axis.plot(*CORNERS[[0, 1, 2, 0]].T, color=ground.ink, linewidth=1.0)
    for radius in RADII:
        axis.plot(*(boundary(radius) @ CORNERS).T, color=ground.faint, linewidth=0.8)
    path = np.array([START.mean, *(step(radius) for radius in np.linspace(0.02, 1.37, 60))]) @ CORNERS
    axis.plot(*path.T, color=CONES, linewidth=1.8, label="CoNES, as the ball grows")
    axis.plot(*(np.array([step(radius) for radius in RADII]) @ CORNERS).T, "o", color=CONES, markersize=4)
    direction = natural_direction()
    end = START.mean + 1.25 * START.mean[0] / -direction[0] * direction
    ray = np.array([START.mean, end]) @ CORNERS
    axis.plot(*ray.T, color=NES, linestyle=(0, (4, 2)), label="natural gradient")
    axis.plot(*(START.mean @ CORNERS), "o", color=ground.ink, markersize=5)
    for corner, name in zip(CORNERS, "ABC", strict=True):
        axis.annotate(name, corner, (corner[0], corner[1] + 0.02), ha="center", fontsize=9)
    axis.set_aspect("equal")
    axis.axis("off")
    legend(axis, ground, loc="upper left")
    return figure


if __name__ == "__main__":
    main(draw)
