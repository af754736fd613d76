r"""The interface of a divergence, which defines the ball of the step problem.

The step problem is   maximize <gradient, change>   subject to   D(new || old) <= radius^2.

For each multiplier lambda the Lagrangian <gradient, change> - lambda D has a maximiser. Its divergence phi(lambda)
falls strictly from +inf to 0, and the solution has phi(lambda) = radius^2. The duality gap at any lambda is
lambda (radius^2 - phi(lambda)). A divergence computes the maximiser; `cones.solvers.root` finds lambda.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from cones.beliefs import Step
from cones.checks import check_positive, store
from cones.component import Component, Storable
from cones.errors import InputError

__all__ = ["Ball", "Divergence", "Lagrangian", "Point"]


class Point(NamedTuple):
    """The maximiser of the Lagrangian at a multiplier.

    Attributes:
        u: the unknown, log(lambda - smallest lambda).
        multiplier: lambda, for a gradient of unit size.
        divergence: phi of the maximiser.
        slope, bend: d phi / du and d^2 phi / du^2; NaN if unknown.
        extra: intermediate results that `Lagrangian.step` reuses.
    """

    u: float
    multiplier: float
    divergence: float
    slope: float
    bend: float
    extra: Any = None


class Lagrangian(ABC):
    """The Lagrangian of one step problem, as a function of u = log(lambda - smallest lambda)."""

    @abstractmethod
    def bracket(self) -> tuple[float, float, float]:
        """A lower bound, a first guess and an upper bound of the root in u."""

    @abstractmethod
    def at(self, u: float) -> Point:
        """The maximiser at u."""

    @abstractmethod
    def step(self, point: Point) -> Step[Any]:
        """The step of a point in the frame: `shift` and `log_ratio`, `kl`, `multiplier`, `objective`, `gap`."""


class Divergence(Component, ABC):
    """A divergence between beliefs."""

    kind: ClassVar[str] = "divergence"

    @abstractmethod
    def lagrangian(self, gradient: Any, radius: float) -> Lagrangian | None:
        """The Lagrangian of the step problem; None if the gradient is zero.

        The gradient is a `FrameGradient` for a Gaussian, a `FamilyGradient` for another family, and a `ProductGradient`
        for a product. Only KL knows the last two.
        """

    @abstractmethod
    def between(self, new: Any, old: Any) -> float:
        """D(new || old)."""


@dataclass(frozen=True)
class Ball(Storable):
    """All beliefs with D(new || old) <= radius^2."""

    divergence: Divergence
    radius: float

    def __post_init__(self) -> None:
        if type(self.radius) is float and 1e-100 <= self.radius <= 1e100:  # the square neither overflows nor underflows
            return
        number = check_positive("radius", self.radius)
        if not 1e-100 <= number <= 1e100:
            raise InputError(f"radius: expected a number between 1e-100 and 1e100, got {number}")
        store(self, radius=number)
