r"""What exponential families whose statistic is the candidate itself share.

    p(x) = h(x) exp( <eta, x> - A(eta) ),     mean = E[x] = dA/deta

eta are the natural parameters, and the mean parameters are the expected candidate. KL(new || old) is convex in the mean
parameters: it is a Bregman divergence of the negative entropy. With the loss linear in them and g its gradient,

    maximize <g, mean' - mean>  subject to  KL <= radius^2     has the solution     eta' = eta + g / lambda

and g = Cov(x)^-1 E[u (x - mean)] is also the natural gradient of the natural parameters. A step's `shift` is a change
of eta. A margin keeps every outcome possible: what has died out is never drawn again.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from cones.beliefs.belief import Belief
from cones.beliefs.step import Step
from cones.checks import check_number, check_vector
from cones.errors import InputError
from cones.types import Matrix, Vector

__all__ = ["ExponentialFamily", "FamilyGradient", "Tilt", "check_margin", "default_margin"]


class FamilyGradient(NamedTuple):
    """The gradient with respect to the mean parameters of a belief.

    Attributes:
        mean: dl/dmean, shape (n,).
        belief: the belief at which it was taken.
        covariance: None; Gaussians have one.
    """

    mean: Vector
    belief: ExponentialFamily
    covariance: None = None


class Tilt(NamedTuple):
    """A change of the natural parameters, without the margin.

    Attributes:
        kl: KL(new || old).
        mean: the new mean parameters.
        variance: the variance of <change, x> under the new belief; d kl / d log(size of the change).
    """

    kl: float
    mean: Vector
    variance: float


class ExponentialFamily(Belief):
    """Independent variables from an exponential family.

    Attributes:
        natural: the natural parameters eta, shape (n,).
        margin: how close to the edge of their range the mean parameters may come.
    """

    natural: Vector
    margin: float

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the mean parameters."""
        return self.dim

    @abstractmethod
    def _set(self, natural: Vector) -> None:
        """Set the natural parameters, kept within the margin, and what follows from them."""

    def with_natural(self, natural: Vector) -> Self:
        """The belief with these natural parameters, kept within the margin."""
        belief = type(self).__new__(type(self))
        belief.margin = self.margin
        belief._set(natural)
        return belief

    @abstractmethod
    def tilted(self, change: Vector) -> Tilt:
        """The effect of a change of the natural parameters."""

    @abstractmethod
    def covariance_times(self, direction: Vector) -> Vector:
        """Cov(x) direction."""

    @abstractmethod
    def precision_times(self, moment: Vector) -> Vector:
        """Cov(x)^-1 moment; the pseudo-inverse if the covariance is singular."""

    @abstractmethod
    def whitened(self, moment: Vector) -> Vector:
        """Cov(x)^-1/2 moment: of identity covariance if the moment has the covariance of a candidate."""

    def from_whitened(self, step: Vector) -> Vector:
        """Cov(x)^-1/2 step: the change of the natural parameters that moves the mean by Cov(x)^1/2 step."""
        return self.whitened(step)

    @abstractmethod
    def log_density(self, candidates: Matrix) -> Vector: ...

    @abstractmethod
    def entropy(self) -> float:
        """Entropy in nats."""

    def natural_gradient(self, gradient: Vector) -> Vector:
        """The natural gradient of the natural parameters, from dl/deta."""
        return self.precision_times(np.asarray(gradient, np.float64))

    def whiten(self, gradient: ArrayLike) -> FamilyGradient:
        """The gradient dl/dmean with its belief; checks shape and finiteness."""
        # A part that the mean cannot follow, such as a constant over all choices, is removed.
        moment = self.covariance_times(check_vector("gradient", gradient, self.dim))
        return FamilyGradient(self.precision_times(moment), self)

    def from_frame(self, shift: Vector) -> Vector:
        """A change of the natural parameters is used as it is."""
        return shift

    def gradient_from_frame(self, gradient: Vector) -> Vector:
        """dl/deta, from dl/dmean."""
        return self.covariance_times(gradient)

    def moved(self, step: Step[Any]) -> Self:
        return self.with_natural(self.natural + step.shift) if step.shift.any() else self

    def kl(self, other: Self) -> float:
        self._check_same_kind(other)
        return other.tilted(self.natural - other.natural).kl

    def __repr__(self) -> str:
        return f"{type(self).__name__}(dim={self.dim}, spread={self.spread():.3g})"

    def _check_same_kind(self, other: object) -> None:
        super()._check_same_kind(other)
        if isinstance(other, ExponentialFamily) and other.natural.shape != self.natural.shape:
            raise InputError(f"other: expected a {type(self).__name__} of the same shape, got {other!r}")

    def _freeze(self, mean: Vector, natural: Vector, margin: float) -> None:
        self.mean, self.natural, self.margin = mean, natural, margin
        mean.flags.writeable = natural.flags.writeable = False


def default_margin(count: int, none_deviates: float = 0.73) -> float:
    """The margin of `count` variables: where all are nearly certain, none deviates with this probability.

    0.73 is that of CatCMA (Hamano et al., 2024), for categories beside numbers. It is also the least for one variable.
    """
    return float(1.0 - max(none_deviates ** (1.0 / max(count, 1)), 0.73))


def check_margin(margin: Any, largest: float) -> float:
    """A margin in [0, largest)."""
    number = check_number("margin", margin)
    if not 0.0 <= number < largest:
        raise InputError(f"margin: expected a number in [0, {largest:g}), got {number}")
    return number
