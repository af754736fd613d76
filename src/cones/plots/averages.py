"""Means of curves over seeds."""

from __future__ import annotations

import numpy as np

from cones.types import Vector

__all__ = ["mean_curve", "measured"]

# Points of a mean curve whose seeds have no points in common.
GRID = 400


def measured(x: Vector, y: Vector) -> tuple[Vector, Vector]:
    """The finite part of a curve."""
    kept = np.isfinite(y)
    return x[kept], y[kept]


def mean_curve(lines: list[tuple[Vector, Vector]]) -> tuple[Vector, Vector, Vector]:
    """Common points of several curves, and their mean and standard deviation there, up to the end of the shortest.

    Curves that do not overlap have no mean.
    """
    length = min(x.size for x, _ in lines)
    x = lines[0][0][:length]
    if all(np.array_equal(other[:length], x) for other, _ in lines):
        values = np.array([y[:length] for _, y in lines])
    elif length and (first := max(x[0] for x, _ in lines)) <= (last := min(x[-1] for x, _ in lines)):
        x = np.linspace(first, last, GRID)
        values = np.array([np.interp(x, *line) for line in lines])
    else:
        x, values = np.empty(0), np.empty((len(lines), 0))
    return x, values.mean(axis=0), values.std(axis=0)
