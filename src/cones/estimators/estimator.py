"""The interface of an estimator: an evaluated population in, an estimate of the gradient out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cones.beliefs import Belief, ProductGradient
from cones.component import Component, Storable
from cones.sampling import NoiseBlock, Plan, Population
from cones.space.lagrangian import Told
from cones.types import Matrix, Vector

__all__ = ["Estimate", "Estimator", "NoiseLevel", "PastPopulation", "Sample"]

NO_DIAGNOSTICS: Mapping[str, float] = {}


class NoiseLevel(NamedTuple):
    """Root mean square norms of the parts of an estimate if losses were independent of candidates.

    Attributes:
        mean: for the gradient with respect to the mean.
        scale: for the trace of the gradient with respect to the covariance.
        shape: for the traceless rest of that gradient.
    """

    mean: float = math.nan
    scale: float = math.nan
    shape: float = math.nan


class Estimate(NamedTuple):
    """An estimate of the gradient of the expected loss.

    Attributes:
        gradient: for Gaussians a `FrameGradient`, for other families a `FamilyGradient`, for products a
            `ProductGradient`; beliefs of your own may have their own type.
        noise: its noise level.
        effective_samples: effective number of independent samples.
        diagnostics: further numbers by name; each becomes a column of the history.
        model: a model of the loss around the belief, such as a `QuadraticModel`; None if the estimator has none.
        factors: for a product, the estimates of its factors.
    """

    gradient: Any
    noise: NoiseLevel
    effective_samples: float
    diagnostics: Mapping[str, float] = NO_DIAGNOSTICS
    model: Any = None
    factors: tuple[Any, ...] = ()

    @classmethod
    def joined(cls, factors: Sequence[Estimate]) -> Estimate:
        """The estimate of a product from those of its factors."""
        diagnostics: dict[str, float] = {}
        for factor in factors:
            diagnostics |= factor.diagnostics
        return cls(
            ProductGradient(tuple(factor.gradient for factor in factors)),
            NoiseLevel(math.sqrt(sum(factor.noise.mean**2 for factor in factors))),
            min(factor.effective_samples for factor in factors),
            diagnostics,
            factors=tuple(factors),
        )


@dataclass(frozen=True)
class PastPopulation(Storable):
    """Candidates of an earlier iteration, shape (k, n), and their losses.

    With constraints, `values` has a row of loss and constraints for each, and the losses are the merits of that
    iteration; `Sample.today` gives those of now.
    """

    candidates: Matrix
    losses: Vector
    values: Matrix | None = None


class Sample(NamedTuple):
    """An evaluated population.

    Attributes:
        population: belief, plan, and candidates.
        noise: the rows of noise behind the candidates, in the frame of the belief.
        losses: the losses passed to `tell`, in the order of the candidates; NaN for failures. With constraints, the
            merits.
        utilities: the losses after shaping; finite, low is good.
        past: the last `Estimator.remembers` populations, the latest first.
        told: what the merits come from; None without constraints. Merits change from one iteration to the next, so an
            estimator that keeps losses keeps `values`, and gets them again by `losses_of`.
        moved: the belief after earlier epochs with this population; None in the first. The estimate is in its frame.
        points: the evaluated candidates, if they are not what the belief makes of the noise: results of older beliefs.
    """

    population: Population
    noise: NoiseBlock
    losses: Vector
    utilities: Vector
    past: tuple[PastPopulation, ...] = ()
    told: Told | None = None
    moved: Belief | None = None
    points: Matrix | None = None

    @property
    def values(self) -> Vector | Matrix:
        """The losses; with constraints, a row of loss and constraints per candidate."""
        return self.losses if self.told is None else self.told.values

    def losses_of(self, values: Vector | Matrix) -> Vector:
        """The losses, or today's merits, of values of this or earlier populations."""
        return values if self.told is None else self.told.lagrangian.merits(values)

    def today(self, past: PastPopulation) -> Vector:
        """The losses of an earlier population; with constraints, its merits as they are now."""
        return past.losses if self.told is None or past.values is None else self.losses_of(past.values)

    @property
    def belief(self) -> Belief:
        return self.population.belief

    @property
    def plan(self) -> Plan:
        return self.population.plan

    def candidates(self) -> Matrix:
        """The evaluated candidates, shape (popsize, n)."""
        if self.points is not None:
            return self.points
        if self.noise.candidates is not None:
            return self.noise.candidates
        return self.population.block(0, len(self.population), drawn=self.noise.kept)

    def factors(self) -> list[Sample]:
        """The sample as each factor of a product sees it."""
        population, product = self.population, self.belief
        noise, samples = self.noise.matrix(), []
        for factor, part in zip(product.factors, product.slices, strict=True):  # type: ignore[attr-defined]
            box = None if population.box is None else population.box.part(part)
            own = Population(factor, population.plan, population.noise, population.iteration, box)
            past = tuple(PastPopulation(old.candidates[:, part], old.losses, old.values) for old in self.past)
            block = NoiseBlock(own, np.ascontiguousarray(noise[:, part]))
            samples.append(Sample(own, block, self.losses, self.utilities, past, self.told))
        return samples

    def followed(self, count: int) -> tuple[PastPopulation, ...]:
        """The latest `count` populations, this one first."""
        if not count:
            return ()
        values = None if self.told is None else self.told.values
        latest = PastPopulation(np.array(self.candidates()), self.losses, values)
        return (latest, *self.past)[:count]


class Estimator(Component, ABC):
    """Estimates the gradient of the expected loss.

    An estimator object holds settings only. Its state is passed in and returned; it is None before the first iteration.

    Attributes:
        remembers: number of past populations in `Sample.past`.
        epochs: number of estimates, and steps, from each population.
        beliefs: the beliefs that it works with.
    """

    kind: ClassVar[str] = "estimator"
    beliefs: ClassVar[tuple[type[Belief], ...]] = (Belief,)
    remembers: ClassVar[int] = 0
    epochs: int = 1

    def check(self, dim: int, plan: Plan) -> None:
        """Raise if the estimator cannot work in `dim` dimensions with populations of this plan."""

    def plan(self, state: Any, plan: Plan) -> Plan:
        """The plan of the next population, given the design's plan."""
        return plan

    @abstractmethod
    def estimate(self, state: Any, sample: Sample) -> tuple[Estimate, Any]:
        """The estimate from a population, and the new state."""
