"""Estimators by factor: one for the Gaussian factors of a belief, one for the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cones.beliefs import Gaussian, Product
from cones.checks import check_kind
from cones.component import setting
from cones.estimators.elite import Elite
from cones.estimators.estimator import Estimate, Estimator, Sample
from cones.estimators.recombination import Recombination

__all__ = ["Factors"]


@dataclass(frozen=True)
class Factors(Estimator):
    """One estimator for Gaussian factors, one for the others. Its state is a tuple of theirs."""

    name = "factors"

    gaussian: Estimator = setting(Recombination(), "Estimator of Gaussian factors.", kind="estimator")
    discrete: Estimator = setting(Elite(), "Estimator of the other factors.", kind="estimator")

    def __post_init__(self) -> None:
        check_kind("gaussian", self.gaussian, Estimator)
        check_kind("discrete", self.discrete, Estimator)

    def estimate(self, state: tuple[Any, ...] | None, sample: Sample) -> tuple[Estimate, tuple[Any, ...]]:
        if not isinstance(sample.belief, Product):
            estimate, new = self._of(sample).estimate(None if state is None else state[0], sample)
            return estimate, (new,)
        samples = sample.factors()
        states = state or (None,) * len(samples)
        pairs = [self._of(part).estimate(own, part) for own, part in zip(states, samples, strict=True)]
        return Estimate.joined([estimate for estimate, _ in pairs]), tuple(new for _, new in pairs)

    def _of(self, sample: Sample) -> Estimator:
        return self.gaussian if isinstance(sample.belief, Gaussian) else self.discrete
