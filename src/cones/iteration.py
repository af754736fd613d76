"""One iteration of CoNES: Algorithm 1 of the paper. ES and NES differ only in line 6.

4  draw candidates from the belief and evaluate them      sampling/, evaluate/
5  estimate the gradient of the expected loss             estimators/
6  find the steepest step in a ball around the belief     steps/ with divergences/, solvers/ and radius/
7  move the belief along the step by an optimizer         optimizers/, beliefs/
8  until a stop criterion is met                          progress/, run/
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from cones.beliefs import Belief, Step
from cones.checks import check_kind
from cones.component import Storable, changed, check_declared
from cones.errors import InputError
from cones.estimators import Estimate, Estimator, PastPopulation, Sample, Shaping
from cones.handover import check_columns, check_step, checked_pair
from cones.integers import spread_of_numbers, with_neighbours
from cones.kernels.spans import inner
from cones.optimizers import Optimizer
from cones.progress import Outcome
from cones.sampling import Design, NoiseStream, Population
from cones.steps import IterationInfo, StepRule

__all__ = ["Algorithm", "AlgorithmState"]


@dataclass(frozen=True)
class AlgorithmState(Storable):
    """The states of the components; None before the first iteration."""

    design: Any = None
    estimator: Any = None
    step: Any = None
    optimizer: Any = None
    past: tuple[PastPopulation, ...] = ()


@dataclass(frozen=True)
class Algorithm(Storable):
    """The components of a method."""

    design: Design
    shaping: Shaping
    estimator: Estimator
    step: StepRule
    optimizer: Optimizer[Any]

    def __post_init__(self) -> None:
        kinds = (Design, Shaping, Estimator, StepRule, Optimizer)
        for field, kind in zip(fields(self), kinds, strict=True):
            check_kind(field.name, getattr(self, field.name), kind)
            check_declared(type(getattr(self, field.name)))

    def check(self, belief: Belief) -> None:
        """Raise if a component does not work with a belief, before anything is evaluated."""
        for part in (self.estimator, self.step):
            if not isinstance(belief, part.beliefs):
                known = ", ".join(kind.__name__ for kind in part.beliefs)
                raise InputError(
                    f"{part.kind}: expected one for a {type(belief).__name__}, got {part.name!r}, which is for: {known}"
                )

    def draw(
        self, state: AlgorithmState, belief: Belief, noise: NoiseStream, popsize: int, iteration: int, age: int
    ) -> Population:
        """Line 4. `age` is the number of iterations since the start or the last restart."""
        design = self.design.plan(state.design, popsize, age)
        return Population(belief, self.estimator.plan(state.estimator, design), noise, iteration)

    def update(self, state: AlgorithmState, sample: Sample, info: IterationInfo) -> Outcome:
        """Lines 5 to 7: from evaluated candidates to the next belief, once per epoch of the estimator."""
        before, past = sample.belief, sample.followed(self.estimator.remembers)
        design = self.design.update(state.design, sample.plan, sample.utilities)
        state = changed(state, design=design, past=past)
        outcome = self._epoch(state, sample, info)
        for _ in range(1, self.estimator.epochs):
            if outcome.status.ok:
                outcome = self._epoch(outcome.state, sample._replace(moved=outcome.belief), info)
        if self.estimator.epochs > 1:
            shift = outcome.belief.mean - before.mean
            total = {"step": math.sqrt(inner(shift, shift)), "kl": outcome.belief.kl(before)}
            outcome = outcome._replace(columns={**outcome.columns, **total})
        return outcome

    def _epoch(self, state: AlgorithmState, sample: Sample, info: IterationInfo) -> Outcome:
        belief = sample.belief if sample.moved is None else sample.moved
        # 5
        estimate, estimator = checked_pair(self.estimator.estimate(state.estimator, sample), Estimate, self.estimator)
        # 6
        step, rule = checked_pair(self.step.propose(state.step, belief, estimate, info), Step, self.step)
        check_step(belief, step, self.step)
        check_columns((*step.columns, *estimate.diagnostics))
        columns = {"multiplier": step.multiplier, "gap": step.gap, **step.columns, **estimate.diagnostics}
        del estimate  # its arrays are large
        state = changed(state, estimator=estimator, step=rule)
        if not step.status.ok:
            return Outcome(belief, state, columns, step.status)
        # 7
        optimizer = self.optimizer.start(step) if state.optimizer is None else state.optimizer
        step, optimizer = self.optimizer.update(optimizer, step)
        belief, kl = belief.move(step)
        belief = with_neighbours(belief, info.box, sample.plan.popsize)
        columns |= {"step": math.sqrt(inner(step.shift, step.shift)), "kl": kl}
        if (spread := spread_of_numbers(belief, info.box)) is not None:
            columns["spread_of_numbers"] = spread
        return Outcome(belief, changed(state, optimizer=optimizer), columns, step.status)
