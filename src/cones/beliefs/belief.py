"""The interface of a belief: the distribution over candidates that a method samples from and updates."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from cones.beliefs.step import Step
from cones.component import Component
from cones.errors import InputError
from cones.kernels.spans import extremes, inner
from cones.markup import card, intervals, numbers
from cones.types import Matrix, Vector

__all__ = ["Belief"]


class Belief(Component, ABC):
    """A distribution over candidates. Immutable: its arrays are read-only.

    Attributes:
        mean: the expected candidate, shape (n,).
        separable: True if each coordinate of a candidate depends only on the same coordinate of the noise. `draw` can
            then compute candidates span by span.
    """

    kind: ClassVar[str] = "belief"
    separable: ClassVar[bool] = False
    mean: Vector

    @property
    def dim(self) -> int:
        """Number of coordinates of a candidate."""
        return self.mean.size

    def _repr_html_(self) -> str:
        deviations = self.standard_deviations()
        rows = [
            ("dimensions", str(self.dim)),
            ("mean", numbers(self.mean)),
            ("deviations", numbers(deviations)),
            ("spread", f"{self.spread():.6g}"),
        ]
        return card(type(self).__name__, rows, intervals(self.mean, deviations))

    @classmethod
    @abstractmethod
    def start(cls, mean: Vector, deviation: Vector) -> Self:
        """The initial belief of a run, from x0 and sigma0."""

    @abstractmethod
    def draw(self, noise: Matrix, out: Matrix, columns: slice = slice(None)) -> None:
        """Turn standard normal noise into candidates.

        Args:
            noise: shape (k, n); one row z per draw.
            out: shape (k, 1, n), or (k, 2, n) for antithetic pairs. out[:, 0] receives the candidate of z, out[:, 1]
                the candidate of -z.
            columns: for separable beliefs, the coordinates that `noise` and `out` cover.
        """

    def candidates(self, noise: Matrix) -> Matrix:
        """Candidates, one per row of `noise`."""
        out = np.empty((len(noise), 1, self.dim), noise.dtype)
        self.draw(noise, out)
        return out[:, 0]

    def mode(self) -> Vector:
        """The most likely candidate."""
        return self.mean

    @abstractmethod
    def log_density(self, candidates: Matrix) -> Vector:
        """Log density (or log probability) of each row of `candidates`."""

    @abstractmethod
    def moved(self, step: Step[Any]) -> Self:
        """The belief after a step."""

    def move(self, step: Step[Any]) -> tuple[Self, float]:
        """The belief after a step, and KL(after || before) of the actual change."""
        after = self.moved(step)
        return after, after.kl(self)

    @abstractmethod
    def kl(self, other: Self) -> float:
        """KL( self || other )."""

    @abstractmethod
    def standard_deviations(self) -> Vector:
        """Standard deviation of each coordinate."""

    def spread(self) -> float:
        """Square root of the mean variance per coordinate."""
        deviations = self.standard_deviations()
        return math.sqrt(inner(deviations, deviations) / self.dim)

    def is_finite(self) -> bool:
        """True if the mean is so far inside the range of its dtype that candidates are, too."""
        most = 0.5 * float(np.finfo(self.mean.dtype).max)
        return inner(self.mean, self.mean) < most * most or all(abs(x) <= most for x in extremes(self.mean))

    def is_resolved(self) -> bool:
        """False if the belief is too narrow along an axis for floats: rounding decides where candidates are."""
        return True

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
