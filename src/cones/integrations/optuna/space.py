"""An Optuna search space as coordinates between -2 and 2.

    float, int      one coordinate along the range, or along its logarithm; steps are cells of equal width on it
    categorical     one coordinate per choice; the largest coordinate decides

A normal belief of deviation 1 around the middle covers the ranges and makes all choices equally likely.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

from cones.types import Vector

__all__ = ["EDGE", "WIDTH", "Coordinates"]

EDGE = 2.0
WIDTH = 2.0 * EDGE


class Coordinates:
    """The coordinates of a search space, in the order of its parameters.

    Example:
        >>> from optuna.distributions import FloatDistribution, IntDistribution
        >>> coordinates = Coordinates({"rate": FloatDistribution(1e-4, 1.0, log=True), "layers": IntDistribution(1, 5)})
        >>> params = coordinates.params(np.zeros(coordinates.dim))
        >>> round(params["rate"], 6), params["layers"]
        (0.01, 3)
    """

    def __init__(self, space: Mapping[str, BaseDistribution]) -> None:
        self._space = dict(space)
        self.dim = sum(_size(distribution) for distribution in self._space.values())

    def params(self, x: Vector) -> dict[str, Any]:
        """The values of all parameters at a point."""
        params, start = {}, 0
        for name, distribution in self._space.items():
            piece = x[start : start + _size(distribution)]
            params[name] = _value(distribution, piece)
            start += piece.size
        return params

    def point(self, params: Mapping[str, Any]) -> Vector:
        """A point at which parameters have these values; the middle of the range for the others."""
        pieces = []
        for name, distribution in self._space.items():
            piece = np.zeros(_size(distribution))
            if name in params:
                _check(name, distribution, params[name])
                piece = _coordinates(distribution, params[name])
            pieces.append(piece)
        return np.concatenate(pieces)


def _size(distribution: BaseDistribution) -> int:
    return len(distribution.choices) if isinstance(distribution, CategoricalDistribution) else 1


def _value(distribution: BaseDistribution, piece: Vector) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[int(piece.argmax())]
    left, right = _ends(distribution)
    along = left + (right - left) * (float(piece[0]) + EDGE) / WIDTH
    value = math.exp(along) if distribution.log else along
    low, high, step = distribution.low, distribution.high, distribution.step
    if step is not None:
        cells = round((high - low) / step)
        value = low + min(max(round((value - low) / step), 0), cells) * step
    value = min(max(value, low), high)  # rounding may leave the range
    return int(value) if isinstance(distribution, IntDistribution) else float(value)


def _coordinates(distribution: BaseDistribution, value: Any) -> Vector:
    if isinstance(distribution, CategoricalDistribution):
        piece = np.zeros(len(distribution.choices))
        piece[int(distribution.to_internal_repr(value))] = 1.0  # ahead by a standard deviation
        return piece
    left, right = _ends(distribution)
    along = math.log(value) if distribution.log else float(value)
    return np.array([WIDTH * (along - left) / (right - left) - EDGE])


def _ends(distribution: BaseDistribution) -> tuple[float, float]:
    """The ends of the coordinate: half a step beyond the outer values of a range in steps."""
    half = 0.0 if distribution.step is None else 0.5 * distribution.step
    low, high = distribution.low - half, distribution.high + half
    return (math.log(low), math.log(high)) if distribution.log else (low, high)


def _check(name: str, distribution: BaseDistribution, value: Any) -> None:
    if isinstance(distribution, CategoricalDistribution):
        distribution.to_internal_repr(value)  # raises ValueError
    elif not distribution.low <= value <= distribution.high:
        raise ValueError(f"x0: {name} = {value!r} is not in {distribution}")
