r"""The interface of a divergence, which defines the ball of the step problem.

The step problem is   maximize <gradient, change>   subject to   D(new || old) <= radius^2.
The change is that of the parameters in which the loss is linearised, the *chart*: (mean, covariance) unless said.

For each multiplier lambda the Lagrangian <gradient, change> - lambda D has a maximiser. Its divergence phi(lambda)
falls strictly from +inf to 0, and the solution has phi(lambda) = radius^2. The duality gap at any lambda is
lambda (radius^2 - phi(lambda)). A divergence computes the maximiser; `cones.solvers.root` finds lambda.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, get_args

from cones.beliefs import FamilyGradient, FrameGradient, ProductGradient, Step
from cones.checks import check_one_of, check_positive, store
from cones.component import Component, Storable
from cones.errors import InputError

__all__ = ["CHARTS", "Ball", "Chart", "Divergence", "Lagrangian", "Point"]

Chart = Literal["covariance", "mean_parameters", "natural_parameters"]
CHARTS: tuple[str, ...] = get_args(Chart)


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

    def level(self, radius: float) -> float:
        """The value of phi on the boundary of the ball; radius^2 unless phi is a function of the divergence."""
        return radius**2

    @abstractmethod
    def step(self, point: Point) -> Step[Any]:
        """The step of a point in the frame: `shift` and `log_ratio`, `divergence`, `multiplier`, `objective`, `gap`."""


class Divergence(Component, ABC):
    """A divergence between beliefs.

    Attributes:
        largest_radius: radii are below it.
        charts: the charts beside (mean, covariance) that the divergence has a Lagrangian for.
        for_families: True if it has one for other families than Gaussians, and for products.
    """

    kind: ClassVar[str] = "divergence"
    largest_radius: ClassVar[float] = math.inf
    for_families: ClassVar[bool] = False
    charts: ClassVar[Mapping[str, Callable[[FrameGradient, float], Lagrangian | None]]] = {}

    @abstractmethod
    def lagrangian(self, gradient: Any, radius: float) -> Lagrangian | None:
        """The Lagrangian of the step problem; None if the gradient is zero.

        The gradient is a `FrameGradient` for a Gaussian, a `FamilyGradient` for another family, and a `ProductGradient`
        for a product. Only with `for_families` does it get the last two.
        """

    @abstractmethod
    def between(self, new: Any, old: Any) -> float:
        """D(new || old)."""

    @property
    def curvature(self) -> float:
        """D / KL of small changes; every f-divergence is a multiple of KL there."""
        return 1.0


@dataclass(frozen=True)
class Ball(Storable):
    """All beliefs with D(new || old) <= radius^2, and the chart in which the loss is linear."""

    divergence: Divergence
    radius: float
    chart: str = "covariance"

    def __post_init__(self) -> None:
        number = self.radius
        if not (type(number) is float and 1e-100 <= number <= 1e100):  # the square neither overflows nor underflows
            number = check_positive("radius", number)
            if not 1e-100 <= number <= 1e100:
                raise InputError(f"radius: expected a number between 1e-100 and 1e100, got {number}")
            store(self, radius=number)
        divergence = self.divergence
        name = getattr(divergence, "name", type(divergence).__name__)
        if not number < divergence.largest_radius:
            largest = f"a number below {divergence.largest_radius:g} for the divergence {name!r}"
            raise InputError(f"radius: expected {largest}, got {number}")
        if self.chart != "covariance":
            check_one_of("chart", self.chart, CHARTS)
            if self.chart not in divergence.charts:
                known = " or ".join(repr(chart) for chart in ("covariance", *divergence.charts))
                raise InputError(f"chart: expected {known} for the divergence {name!r}, got {self.chart!r}")

    def check_family(self, kind: str) -> None:
        """Raise if the ball is of Gaussians alone; `kind` is the belief that is none."""
        if self.chart != "covariance":
            raise InputError(f"chart: expected none for a {kind}, only Gaussians have several, got {self.chart!r}")
        if not self.divergence.for_families:
            raise InputError(f"divergence: expected 'kl' for a {kind}, got {type(self.divergence).name!r}")

    def lagrangian(self, gradient: Any) -> Lagrangian | None:
        """The Lagrangian of the step problem; None if the gradient is zero."""
        if isinstance(gradient, FamilyGradient):
            self.check_family(type(gradient.belief).__name__)
        elif isinstance(gradient, ProductGradient):
            self.check_family("Product")
        if self.chart == "covariance":
            return self.divergence.lagrangian(gradient, self.radius)
        return self.divergence.charts[self.chart](gradient, self.radius)
