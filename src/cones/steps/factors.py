"""Step rules by factor: one for the Gaussian factors of a belief, one for the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cones.beliefs import Gaussian, Product, Step
from cones.checks import check_kind
from cones.component import setting
from cones.estimators import Estimate
from cones.steps.evolution_path import EvolutionPath
from cones.steps.family_path import FamilyPath
from cones.steps.rule import IterationInfo, StepRule

__all__ = ["FactorSteps"]


@dataclass(frozen=True)
class FactorSteps(StepRule):
    """One rule for Gaussian factors, one for the others: each factor has steps, and radii, of its own."""

    name = "factors"

    gaussian: StepRule = setting(EvolutionPath(), "Step rule of Gaussian factors.", kind="step")
    discrete: StepRule = setting(FamilyPath(), "Step rule of the other factors.", kind="step")

    def __post_init__(self) -> None:
        check_kind("gaussian", self.gaussian, StepRule)
        check_kind("discrete", self.discrete, StepRule)

    def propose(
        self, state: tuple[Any, ...] | None, belief: Any, estimate: Estimate, info: IterationInfo
    ) -> tuple[Step[Any], tuple[Any, ...]]:
        if not isinstance(belief, Product):
            step, new = self._of(belief).propose(None if state is None else state[0], belief, estimate, info)
            return step, (new,)
        states, pairs = state or (None,) * len(belief.factors), []
        for own, factor, part, columns in zip(states, belief.factors, estimate.factors, belief.slices, strict=True):
            box = None if info.box is None else info.box.part(columns)
            pairs.append(self._of(factor).propose(own, factor, part, info._replace(box=box)))
        return belief.joined(step for step, _ in pairs), tuple(new for _, new in pairs)

    def _of(self, belief: Any) -> StepRule:
        return self.gaussian if isinstance(belief, Gaussian) else self.discrete
