"""Problems with bits, integers and categories, each with its optimum.

Binary, n bits, all to be minimised to 0: OneMax, LeadingOnes, trap-5 (blocks of five bits that mislead), a knapsack (to
the bound of its relaxation) and the selection of features for a linear classifier. Mixed, k numbers, k integers and k
categories of five: sphere and ellipsoid of the numbers and integers, or Rosenbrock of the numbers and sphere of the
integers, plus the number of wrong categories. Pipelines of scikit-learn are in `pipelines`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import cones
from benchmarks.spaces.pipelines import PIPELINES, pipeline

__all__ = ["BINARY", "MIXED", "Problem", "problem"]

OPTIONS = 5  # of a category
REACH = 10  # numbers and integers are between -REACH and REACH


@dataclass(frozen=True)
class Problem:
    """A loss of values by name, and the loss at which it counts as solved."""

    name: str
    space: cones.Space
    loss: Callable[[dict[str, Any]], float]
    target: float


def onemax(bits: np.ndarray) -> float:
    return float(bits.size - bits.sum())


def leading_ones(bits: np.ndarray) -> float:
    return float(bits.size - np.cumprod(bits).sum())


def trap5(bits: np.ndarray) -> float:
    ones = bits.reshape(-1, 5).sum(axis=1)
    return float(bits.size - np.where(ones == 5, 5, 4 - ones).sum())


def knapsack(size: int) -> Callable[[np.ndarray], float]:
    """Weights and values that are correlated; a load above the capacity costs more than an empty knapsack saves."""
    rng = np.random.default_rng(size)
    weights = rng.integers(5, 30, size).astype(float)
    values, capacity = weights + rng.integers(0, 15, size), 0.5 * weights.sum()
    order = np.argsort(-values / weights)
    load = np.cumsum(weights[order])
    whole = int((load <= capacity).sum())
    bound = values[order][:whole].sum() + (capacity - load[whole - 1]) * (values / weights)[order[whole]]

    def loss(bits: np.ndarray) -> float:
        load = float(bits @ weights)
        return float(bound - bits @ values) if load <= capacity else float(bound + load - capacity)

    return loss


def features(size: int) -> Callable[[np.ndarray], float]:
    """The error of ridge regression on the digits of scikit-learn with a choice of its pixels, and of noise, as inputs.

    Odd against even digits; half of the images for training, half for the error; 1% per hundred inputs.
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    rng = np.random.default_rng(0)
    inputs = digits.data / 16.0
    inputs = np.hstack([inputs, rng.standard_normal((len(inputs), size - inputs.shape[1]))])
    signs = np.where(digits.target % 2, 1.0, -1.0)
    half = len(inputs) // 2
    gram = inputs[:half].T @ inputs[:half] + np.eye(size)
    moment = inputs[:half].T @ signs[:half]

    def loss(bits: np.ndarray) -> float:
        used = np.flatnonzero(bits)
        if not used.size:
            return 1.0
        weights = np.linalg.solve(gram[np.ix_(used, used)], moment[used])
        wrong = (inputs[half:, used] @ weights) * signs[half:] <= 0.0
        return float(wrong.mean() + 0.01 * used.size / 100.0)

    return loss


def sphere(y: np.ndarray) -> float:
    return float(y @ y)


def ellipsoid(y: np.ndarray) -> float:
    return float(1000.0 ** (np.arange(y.size) / (y.size - 1)) @ y**2)


def rosenbrock(y: np.ndarray) -> float:
    x, z = np.split(y, 2)
    x = x + 1.0
    return float((100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (x[:-1] - 1.0) ** 2).sum() + z @ z)


BINARY: dict[str, Callable[[int], Callable[[np.ndarray], float]]] = {
    "onemax": lambda size: onemax,
    "leading_ones": lambda size: leading_ones,
    "trap5": lambda size: trap5,
    "knapsack": knapsack,
    "features": features,
}
MIXED: dict[str, Callable[[np.ndarray], float]] = {"sphere": sphere, "ellipsoid": ellipsoid, "rosenbrock": rosenbrock}


def problem(name: str, size: int) -> Problem:
    """A problem by name: of `size` bits, of `size` numbers, integers and categories each, or a pipeline."""
    if name in PIPELINES:
        return Problem(name, *pipeline(name), target=-np.inf)
    if name in BINARY:
        of_bits = BINARY[name](size)
        target = -np.inf if name in ("knapsack", "features") else 0.0
        return Problem(
            f"{name} {size}",
            cones.Space(bits=cones.Flag(shape=size)),
            lambda v: of_bits(v["bits"].astype(float)),
            target,
        )
    of_numbers = MIXED[name]
    space = cones.Space(
        x=cones.Float(-REACH, REACH, shape=size),
        z=cones.Integer(-REACH, REACH, shape=size),
        c=cones.Choice(*range(OPTIONS), shape=size),
    )

    def loss(values: dict[str, Any]) -> float:
        wrong = sum(option != index % OPTIONS for index, option in enumerate(values["c"]))
        # The optimum is not where the ranges have their middle.
        return float(of_numbers(np.concatenate([values["x"] - 1.5, values["z"] - 2.0])) + wrong)

    return Problem(f"{name} {size}+{size}+{size}", space, loss, 1e-8)
