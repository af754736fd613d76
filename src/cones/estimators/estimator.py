"""The interface of an estimator: an evaluated population in, an estimate of the gradient out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from cones.beliefs import Belief
from cones.component import Component, Storable
from cones.sampling import NoiseBlock, Plan, Population
from cones.types import Matrix, Vector

__all__ = ["Estimate", "Estimator", "NoiseLevel", "PastPopulation", "Sample"]

NO_DIAGNOSTICS: Mapping[str, float] = {}


class NoiseLevel(NamedTuple):
    """The norms that parts of an estimate would have, root mean square, if losses had nothing to do with candidates.

    Attributes:
        mean: of the gradient in the mean.
        scale: of the trace of the gradient in the covariance.
        shape: of the rest of that gradient.
    """

    mean: float = math.nan
    scale: float = math.nan
    shape: float = math.nan


class Estimate(NamedTuple):
    """An estimate of the gradient of the expected loss.

    Attributes:
        gradient: for Gaussians a `FrameGradient`; other families have their own type.
        noise: its noise level.
        effective_samples: how many independent samples the estimate is worth.
        diagnostics: further numbers by name; each becomes a column of the history.
    """

    gradient: Any
    noise: NoiseLevel
    effective_samples: float
    diagnostics: Mapping[str, float] = NO_DIAGNOSTICS


@dataclass(frozen=True)
class PastPopulation(Storable):
    """Candidates of an earlier iteration, shape (k, n), and their losses."""

    candidates: Matrix
    losses: Vector


class Sample(NamedTuple):
    """An evaluated population.

    Attributes:
        population: belief, plan, and candidates.
        noise: the rows of noise that the candidates come from, in the frame of the belief.
        losses: as they were told, in the order of the candidates; NaN for failures.
        utilities: the losses after shaping; finite, low is good.
        past: earlier populations, the latest first, if the estimator asks for them by `remembers`.
    """

    population: Population
    noise: NoiseBlock
    losses: Vector
    utilities: Vector
    past: tuple[PastPopulation, ...] = ()

    @property
    def belief(self) -> Belief:
        return self.population.belief

    @property
    def plan(self) -> Plan:
        return self.population.plan

    def candidates(self) -> Matrix:
        """The candidates as they were evaluated, shape (popsize, n)."""
        return self.population.block(0, len(self.population))


class Estimator(Component, ABC):
    """Estimates the gradient of the expected loss.

    An estimator is settings; what it remembers is a value of its own, None before the first iteration.

    Attributes:
        remembers: how many past populations `Sample.past` shall hold.
    """

    kind: ClassVar[str] = "estimator"
    remembers: ClassVar[int] = 0

    def plan(self, state: Any, plan: Plan) -> Plan:
        """The plan by which the next candidates are drawn, given the one of the design."""
        return plan

    @abstractmethod
    def estimate(self, state: Any, sample: Sample) -> tuple[Estimate, Any]:
        """The estimate from a population, and what to remember."""
