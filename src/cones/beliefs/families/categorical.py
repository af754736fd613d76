r"""Independent choices, as one-hot vectors.

A variable with k choices takes k coordinates of a candidate, one of which is 1. With p the probabilities and d a change
of eta = log p,

    p' = p e^d / sum(p e^d),     KL = <p', d> - log sum(p e^d),     Cov(x) = diag(p) - p p^T

A constant added to d changes nothing. The covariance is singular along it; gradients have <p, g> = 0 in each variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from cones.beliefs.families.family import ExponentialFamily, Tilt, check_margin, default_margin
from cones.checks import check_integer, check_vector
from cones.errors import InputError
from cones.types import Matrix, Vector

__all__ = ["Categorical"]

# Without a margin, probabilities stay above e^-LARGEST.
LARGEST = 700.0


class Categorical(ExponentialFamily):
    """Independent choices: candidates are one-hot vectors, one after the other.

    Args:
        *probabilities: for each variable, its probabilities, or the number of choices, which are then equally likely.
        margin: the least probability of all choices of a variable but the most likely one together; by default all
            variables of a belief that is nearly certain take that one with a probability of 0.73.

    Example:
        >>> belief = Categorical([0.5, 0.5], 3)
        >>> belief.choices, belief.dim
        ((2, 3), 5)
        >>> belief.candidates(np.array([[0.3, 0.4, 0.1, 0.0, 0.2]]))
        array([[0., 1., 0., 0., 1.]])
    """

    name = "categorical"

    def __init__(self, *probabilities: int | ArrayLike, margin: float | None = None) -> None:
        if not probabilities:
            raise InputError("probabilities: expected at least one variable, got none")
        parts = [_checked(index, part) for index, part in enumerate(probabilities)]
        self.choices = tuple(part.size for part in parts)
        self.margin = default_margin(len(parts)) if margin is None else check_margin(margin, 0.5)
        with np.errstate(divide="ignore"):
            self._set(np.log(np.concatenate(parts)))

    @classmethod
    def start(cls, mean: Vector, deviation: Vector) -> Self:
        """One variable whose probabilities are the mean."""
        return cls(mean)

    def _index(self) -> None:
        """Where the variables are, and which one each coordinate belongs to."""
        self._sizes = np.asarray(self.choices)
        self._starts = np.cumsum((0, *self.choices))[:-1]
        self._variable = np.repeat(np.arange(len(self.choices)), self._sizes)
        for array in (self._sizes, self._starts, self._variable):
            array.flags.writeable = False

    def _set(self, natural: Vector) -> None:
        """Normalise, and apply the margin: what it adds is taken from the choices above it in proportion."""
        self._index()
        least = (max(self.margin, np.exp(-LARGEST)) / (self._sizes - 1.0))[self._variable]
        top = np.maximum.reduceat(natural, self._starts)[self._variable]
        p = np.exp(natural - top)
        p /= self._sums(p)
        low = np.logical_or.reduceat(p < least, self._starts)[self._variable]
        if low.any():
            above = np.maximum(p - least, 0.0)
            p = np.where(low, least + above * ((1.0 - self._sums(least)) / self._sums(above)), p)
        natural = np.log(p)
        self._freeze(np.exp(natural), natural, self.margin)

    def _sums(self, values: Vector) -> Vector:
        """The sum over each variable, at each of its coordinates."""
        return np.asarray(np.add.reduceat(values, self._starts)[self._variable])

    def with_natural(self, natural: Vector) -> Self:
        self_ = type(self).__new__(type(self))
        self_.choices, self_.margin = self.choices, self.margin
        self_._set(natural)
        return self_

    @property
    def freedom(self) -> int:
        return self.dim - len(self.choices)

    def draw(self, noise: Matrix, out: Matrix, columns: slice = slice(None)) -> None:
        self._draw(noise, out[:, 0])
        if out.shape[1] == 2:
            self._draw(-noise, out[:, 1])

    def _draw(self, noise: Matrix, out: Matrix) -> None:
        """The largest of log p - log E with E exponential is a draw from p; E comes from the normals."""
        scores = self.natural - np.log(-log_ndtr(noise))
        out[:] = 0.0
        for first, last in pairwise((*self._starts, self.dim)):
            best = scores[:, first:last].argmax(axis=1)
            out[np.arange(len(noise)), first + best] = 1.0

    def mode(self) -> Vector:
        mode = np.zeros(self.dim)
        for first, last in pairwise((*self._starts, self.dim)):
            mode[first + int(self.mean[first:last].argmax())] = 1.0
        return mode

    def log_density(self, candidates: Matrix) -> Vector:
        return np.asarray(np.atleast_2d(candidates) @ self.natural)

    def tilted(self, change: Vector) -> Tilt:
        top = np.maximum.reduceat(change, self._starts)[self._variable]
        wide = top - np.minimum.reduceat(change, self._starts)[self._variable] > 1.0
        # Relative to the average change, KL does not cancel for small ones; relative to the largest, nothing overflows.
        d = change - np.where(wide, top, self._sums(self.mean * np.where(wide, 0.0, change)))
        weights = self.mean * np.exp(d)
        new = weights / self._sums(weights)
        total = np.add.reduceat(self.mean * np.expm1(d), self._starts)
        inner = np.add.reduceat(new * d, self._starts)
        variance = float((new * d * d).sum() - (inner**2).sum())
        return Tilt(float((inner - np.log1p(total)).sum()), new, max(variance, 0.0))

    def covariance_times(self, direction: Vector) -> Vector:
        return np.asarray(self.mean * (direction - self._sums(self.mean * direction)))

    def precision_times(self, moment: Vector) -> Vector:
        gradient = moment / self.mean
        return np.asarray(gradient - self._sums(self.mean * gradient))

    def whitened(self, moment: Vector) -> Vector:
        return np.asarray(moment / np.sqrt(self.mean))

    def standard_deviations(self) -> Vector:
        return np.asarray(np.sqrt(self.mean * (self._sums(self.mean) - self.mean).clip(1e-300)))

    def entropy(self) -> float:
        return -float(self.mean @ self.natural)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.from_state, (self.state(),)

    def state(self) -> dict[str, Any]:
        return {"natural": self.natural, "choices": self.choices, "margin": self.margin}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        self = cls.__new__(cls)
        natural = check_vector("natural", state["natural"])
        if not isinstance(state["choices"], Sequence) or isinstance(state["choices"], str):
            raise InputError(f"choices: expected numbers of choices, got {state['choices']!r:.80}")
        self.choices = tuple(check_integer("choices", count, 2) for count in state["choices"])
        if sum(self.choices) != natural.size:
            raise InputError(f"choices: expected {natural.size} in all, got {sum(self.choices)}")
        self.margin = check_margin(state["margin"], 0.5)
        self._index()
        self._freeze(np.exp(natural), natural, self.margin)
        if (np.abs(self._sums(self.mean) - 1.0) > 1e-6).any():
            raise InputError("natural: expected logarithms of probabilities, got some that do not sum to 1")
        return self


def _checked(index: int, part: Any) -> Vector:
    name = f"probabilities[{index}]"
    if isinstance(part, (int, np.integer)):
        count = check_integer(name, part, 2)
        return np.full(count, 1.0 / count)
    values = check_vector(name, part)
    if values.size < 2 or values.min() < 0.0 or abs(float(values.sum()) - 1.0) > 1e-6:
        raise InputError(f"{name}: expected at least two probabilities with the sum 1, got {values!r:.80}")
    return values
