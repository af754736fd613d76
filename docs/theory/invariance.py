"""Theorem 2: the same distribution from four encodings, and four from finite steps along the natural gradient.

The encodings hold the same covariance as itself, as its Cholesky factor, as its logarithm and as its inverse.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from drawing import CONES, CYAN, ES, GREEN, Ground, legend, main, panels

import cones
from cones.beliefs import ENCODINGS, decode, encode, gradient_from_encoding, gradient_to_encoding

BELIEF = cones.FullGaussian([0.0, 0.0], [[1.0, 0.3], [0.3, 0.5]])
GRADIENT = cones.Gradient([0.6, 0.5], [[0.25, 0.2], [0.2, -0.3]])
RADIUS = 0.75
COLOURS = dict(zip(ENCODINGS, (ES, CONES, GREEN, CYAN), strict=True))


def by_cones(encoding: str) -> Any:
    """Hold belief and gradient in an encoding, come back by the chain rule, solve."""
    held = gradient_to_encoding(BELIEF, GRADIENT, encoding)
    start = decode(cones.FullGaussian, BELIEF.mean, encode(BELIEF, encoding), encoding)
    return cones.solve_step(start, gradient_from_encoding(start, held, encoding), RADIUS).belief


def by_natural_gradient(encoding: str, rate: float | None = None) -> Any:
    """A straight step along the natural gradient in the parameters of an encoding.

    Its Fisher length is that of the ball. In the parameters p the natural gradient is dp/dSigma applied to that in
    Sigma, here by a central difference.
    """
    natural = BELIEF.natural_gradient(GRADIENT)
    length = np.sum(natural.mean * GRADIENT.mean) + np.sum(natural.covariance * GRADIENT.covariance)
    rate = RADIUS * np.sqrt(2.0 / length) if rate is None else rate
    ahead, behind = (
        encode(cones.FullGaussian(BELIEF.mean, BELIEF.covariance + h * natural.covariance), encoding)
        for h in (1e-5, -1e-5)
    )
    velocity = (ahead - behind) / 2e-5
    mean = BELIEF.mean + rate * natural.mean
    return decode(cones.FullGaussian, mean, encode(BELIEF, encoding) + rate * velocity, encoding)


def outline(belief: Any) -> Any:
    """The ellipse of one standard deviation."""
    turn = np.linspace(0.0, 2.0 * np.pi, 200)
    return belief.mean[:, None] + np.linalg.cholesky(belief.covariance) @ np.array([np.cos(turn), np.sin(turn)])


def draw(ground: Ground) -> Any:
    figure, axes = panels(ground, (8.2, 3.2), 2)
    for axis, make, title in zip(axes, (by_cones, by_natural_gradient), ("CoNES", "natural gradient"), strict=True):
        axis.plot(*outline(BELIEF), color=ground.faint, linewidth=1.2, linestyle=(0, (4, 2)), label="before the step")
        for number, encoding in enumerate(ENCODINGS):
            new = make(encoding)
            # The widest line first, so that lines on top of each other are all seen.
            width = 7.0 - 1.8 * number if make is by_cones else 1.8
            axis.plot(*outline(new), color=COLOURS[encoding], linewidth=width, label=encoding)
            axis.plot(*new.mean, "o", color=COLOURS[encoding], markersize=4)
        axis.set_title(f"{title}, one step from four encodings")
        axis.set_aspect("equal")
        axis.set_xlim(-1.4, 3.0)
        axis.set_ylim(-1.0, 1.75)
    legend(axes[1], ground, loc="upper left")
    return figure


if __name__ == "__main__":
    main(draw)
