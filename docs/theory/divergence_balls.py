"""The balls of the divergences around a one-dimensional Gaussian, and the steps in them as the radius grows.

In the half-plane of mean and variance, around N(0, 1). Radii are such that small balls agree: D <= curvature epsilon^2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from drawing import CONES, CYAN, ES, GREEN, NES, Ground, legend, main, panels

import cones
from cones.component import component_from

BELIEF = cones.DiagonalGaussian([0.0], [1.0])
# Of the expected loss E[(x + 1)^2 / 2] at N(0, 1), in (mean, variance).
GRADIENT = cones.Gradient([1.0], [0.5])
SMALL, LARGE = 0.1, 0.8
SHOWN = {
    "kl": ("KL(P' ‖ P)", CONES),
    "reverse_kl": ("KL(P ‖ P')", NES),
    "hellinger": ("Hellinger²", GREEN),
    "chi2": ("χ²", ES),
    "renyi:0.2": (r"Rényi, $\alpha = 0.2$", CYAN),
}


def radius_of(name: str, size: float) -> float:
    """The radius of a ball of this divergence that agrees with KL's of radius `size` while both are small."""
    return math.sqrt(component_from("divergence", name).curvature) * size


def divergence(name: str, mean: Any, variance: Any) -> Any:
    """D( N(mean, variance) || N(0, 1) ) on arrays."""
    if name == "kl":
        return 0.5 * (mean**2 + variance - 1.0 - np.log(variance))
    if name == "reverse_kl":
        return 0.5 * ((1.0 + mean**2) / variance - 1.0 + np.log(variance))
    order = {"hellinger": 0.5, "chi2": 2.0}.get(name) or float(name.partition(":")[2])
    s = order + (1.0 - order) * variance
    with np.errstate(all="ignore"):
        renyi = 0.5 * order * mean**2 / s - (np.log(s) - (1.0 - order) * np.log(variance)) / (2.0 * (order - 1.0))
        found = {"hellinger": -np.expm1(-0.5 * renyi), "chi2": np.expm1(renyi)}.get(name, renyi)
    return np.where(s > 0.0, found, np.inf)


def step(name: str, size: float) -> tuple[float, float]:
    """Mean and variance of the belief to which the step goes."""
    new = cones.solve_step(BELIEF, GRADIENT, radius_of(name, size), divergence=name).belief
    return float(new.mean[0]), float(new.variance[0])


def path(name: str, size: float) -> Any:
    """The steps of growing balls, shape (40, 2)."""
    return np.array([step(name, value) for value in np.linspace(1e-3, size, 40)])


def draw(ground: Ground) -> Any:
    figure, axes = panels(ground, (8.2, 4.2), 2)
    for axis, size, half in zip(axes, (SMALL, LARGE), (0.2, 1.7), strict=True):
        low, high = (0.05, 5.0) if size == LARGE else (0.7, 1.35)
        X, Y = np.meshgrid(np.linspace(-half, half, 200), np.linspace(low, high, 200))
        for name, (_, colour) in SHOWN.items():
            level = radius_of(name, size) ** 2
            axis.contour(X, Y, divergence(name, X, Y), levels=[level], colors=[colour], linewidths=1.3)
            axis.plot(*path(name, size).T, color=colour, linewidth=1.0, linestyle=(0, (1, 1)))
            axis.plot(*step(name, size), "o", color=colour, markersize=4)
        axis.plot(0.0, 1.0, "o", color=ground.ink, markersize=5, zorder=6)
        axis.set_xlim(-half, half)
        axis.set_ylim(low, high)
        axis.set_title(rf"$\epsilon = {size:g}$")
        axis.set_xlabel(r"mean $\mu$")
    axes[0].set_ylabel(r"variance $\sigma^2$")
    for text, colour in SHOWN.values():
        axes[1].plot([], [], color=colour, label=text)
    handles, texts = axes[1].get_legend_handles_labels()
    legend(figure, ground, handles=handles, labels=texts, loc="outside lower center", ncols=5)
    return figure


if __name__ == "__main__":
    main(draw)
