"""The KL ball around a one-dimensional Gaussian, small and large (the paper's Fig. 2, computed).

In the half-plane of mean and standard deviation: the ball KL <= epsilon^2 around N(0, 1), the ellipse that the Fisher
information makes of it, the natural gradient, and where CoNES goes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from drawing import CONES, ES, NES, Ground, arrow, legend, main, panels

import cones

BELIEF = cones.DiagonalGaussian([0.0], [1.0])
# Of the expected loss E[(x + 1)^2 / 2] at N(0, 1), in (mean, variance).
GRADIENT = cones.Gradient([1.0], [0.5])
SMALL, LARGE = 0.15, 1.5


def kl(mean: Any, deviation: Any) -> Any:
    """KL( N(mean, deviation^2) || N(0, 1) )."""
    return 0.5 * (mean**2 + deviation**2 - 1.0) - np.log(deviation)


def step(radius: float) -> tuple[float, float]:
    """Mean and standard deviation of the belief to which the convex program goes."""
    new = cones.solve_step(BELIEF, GRADIENT, radius).belief
    return float(new.mean[0]), float(new.deviation[0])


def natural_direction() -> tuple[float, float]:
    """The natural gradient as a direction in (mean, deviation); at deviation 1, d(deviation) is half d(variance)."""
    natural = BELIEF.natural_gradient(GRADIENT)
    direction = np.array([natural.mean[0], 0.5 * natural.covariance[0]])
    return tuple(direction / np.linalg.norm(direction))


def ellipse(radius: float, count: int = 200) -> tuple[Any, Any]:
    """Mean^2 + 2 (deviation - 1)^2 = 2 radius^2: the ball to second order."""
    turn = np.linspace(0.0, 2.0 * np.pi, count)
    return np.sqrt(2.0) * radius * np.cos(turn), 1.0 + radius * np.sin(turn)


def on_the_boundary(direction: tuple[float, float], radius: float) -> tuple[float, float]:
    """Where the ray from (0, 1) leaves the ball, by bisection: KL grows along any ray that goes up."""
    low, high = 0.0, 10.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        inside = kl(middle * direction[0], 1.0 + middle * direction[1]) <= radius**2
        low, high = (middle, high) if inside else (low, middle)
    return low * direction[0], 1.0 + low * direction[1]


def draw(ground: Ground) -> Any:
    figure, axes = panels(ground, (8.2, 4.2), 2)
    for axis, radius, half in zip(axes, (SMALL, LARGE), (0.3, 3.0), strict=True):
        x = np.linspace(-half, half, 300)
        low, high = (0.0, 3.3) if radius == LARGE else (1.0 - half, 1.0 + half)
        y = np.linspace(max(low, 1e-3), high, 300)
        X, Y = np.meshgrid(x, y)
        axis.contourf(X, Y, kl(X, Y), levels=[-1.0, radius**2], colors=[CONES], alpha=0.18)
        axis.contour(X, Y, kl(X, Y), levels=[radius**2], colors=[CONES], linewidths=1.5)
        axis.contour(X, Y, X + 0.5 * Y**2, levels=12, colors=[ground.faint], linewidths=0.5, linestyles="solid")
        axis.plot(*ellipse(radius), color=ES, linewidth=1.2, linestyle=(0, (4, 2)))
        radii = np.linspace(1e-3, radius, 60)
        axis.plot(*np.array([step(value) for value in radii]).T, color=CONES, linewidth=1.0, linestyle=(0, (1, 1)))
        arrow(axis, (0.0, 1.0), on_the_boundary(natural_direction(), radius), NES)
        arrow(axis, (0.0, 1.0), step(radius), CONES)
        axis.plot(0.0, 1.0, "o", color=ground.ink, markersize=6, zorder=6)
        axis.set_xlim(-half, half)
        axis.set_ylim(low, high)
        axis.set_title(rf"$\epsilon = {radius:g}$")
        axis.set_xlabel(r"mean $\mu$")
    axes[0].set_ylabel(r"standard deviation $\sigma$")
    for colour, style, text in (
        (CONES, "-", r"CoNES, ball $\mathrm{KL} \leq \epsilon^2$"),
        (NES, "-", "natural gradient"),
        (ES, (0, (4, 2)), "the ball's Fisher ellipse"),
        (ground.faint, "-", "equal linearised loss"),
    ):
        axes[1].plot([], [], color=colour, linestyle=style, label=text)
    handles, texts = axes[1].get_legend_handles_labels()
    legend(figure, ground, handles=handles, labels=texts, loc="outside lower center", ncols=4)
    return figure


if __name__ == "__main__":
    main(draw)
