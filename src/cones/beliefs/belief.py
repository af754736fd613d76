"""The interface of a belief: a distribution over candidates that a method draws from and moves."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from cones.beliefs.step import Step
from cones.component import Component
from cones.errors import InputError
from cones.kernels.spans import extremes, inner
from cones.types import Matrix, Vector

__all__ = ["Belief"]


class Belief(Component, ABC):
    """A distribution over candidates. Immutable: its arrays are read-only.

    Attributes:
        mean: the expected candidate, shape (n,).
        separable: True if each coordinate of a candidate depends on the same coordinate of the noise alone, so that
            `draw` can make candidates span by span.
    """

    kind: ClassVar[str] = "belief"
    separable: ClassVar[bool] = False
    mean: Vector

    @property
    def dim(self) -> int:
        """Coordinates of a candidate."""
        return self.mean.size

    @classmethod
    @abstractmethod
    def start(cls, mean: Vector, deviation: Vector) -> Self:
        """The belief of a run's start, from x0 and sigma0."""

    @abstractmethod
    def draw(self, noise: Matrix, out: Matrix, columns: slice = slice(None)) -> None:
        """Turn standard normal noise into candidates.

        Args:
            noise: shape (k, n); one row z per draw.
            out: shape (k, 1, n), or (k, 2, n) for antithetic pairs. The candidate of z is written to out[:, 0], that
                of -z to out[:, 1].
            columns: for separable beliefs, the coordinates that `noise` and `out` are of.
        """

    def candidates(self, noise: Matrix) -> Matrix:
        """Candidates, one per row of `noise`."""
        out = np.empty((len(noise), 1, self.dim), noise.dtype)
        self.draw(noise, out)
        return out[:, 0]

    @abstractmethod
    def log_density(self, candidates: Matrix) -> Vector:
        """The logarithm of the density, or probability, of each row of `candidates`."""

    @abstractmethod
    def moved(self, step: Step[Any]) -> Self:
        """The belief after a step."""

    def move(self, step: Step[Any]) -> tuple[Self, float]:
        """The belief after a step, and KL(after || before) of the change that was really made."""
        after = self.moved(step)
        return after, after.kl(self)

    @abstractmethod
    def kl(self, other: Self) -> float:
        """KL( self || other )."""

    @abstractmethod
    def standard_deviations(self) -> Vector:
        """The standard deviation of each coordinate."""

    def spread(self) -> float:
        """Root of the mean variance per coordinate."""
        deviations = self.standard_deviations()
        return math.sqrt(inner(deviations, deviations) / self.dim)

    def is_finite(self) -> bool:
        return math.isfinite(inner(self.mean, self.mean)) or all(map(math.isfinite, extremes(self.mean)))

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """What `from_state` needs to rebuild this belief bit for bit."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: dict[str, Any]) -> Self: ...

    def stored(self) -> dict[str, Any]:
        return self.state()

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Self:
        return cls.from_state(parts)

    def _check_same_kind(self, other: object) -> None:
        if type(other) is not type(self) or not isinstance(other, Belief) or other.dim != self.dim:
            raise InputError(f"other: expected a {type(self).__name__} of {self.dim} dimensions, got {other!r}")
