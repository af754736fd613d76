"""ES, NES and CoNES with ask and tell: iterations, candidates in memory or in chunks, and restarts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from cones.beliefs import Belief
from cones.checks import check_integer, check_kind
from cones.estimators import Sample
from cones.iteration import Algorithm, AlgorithmState
from cones.kernels.buffers import aligned
from cones.progress import Outcome
from cones.progress.stopping import ENDS_OF_DESCENT, MaxFev, MaxIter, first_met
from cones.sampling import NoiseBlock, NoiseStream, Population
from cones.steps import IterationInfo
from cones.strategy import Strategy
from cones.types import Matrix, Vector

__all__ = ["EvolutionStrategy"]

# Populations of more bytes than this are computed in chunks.
LARGEST_POPULATION = 2**30


class EvolutionStrategy(Strategy):
    """A method composed of components; created by `cones.ES`, `cones.NES` and `cones.CoNES`."""

    SAVED_FIELDS: ClassVar[tuple[str, ...]] = (
        *Strategy.SAVED_FIELDS, "start", "noise", "algorithm", "chunked", "restarts"
    )  # fmt: skip

    def __init__(
        self,
        start: Belief | None,
        noise: NoiseStream,
        algorithm: Algorithm,
        chunked: bool | None = None,
        restarts: int = 0,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        check_kind("noise", noise, NoiseStream)
        check_kind("algorithm", algorithm, Algorithm)
        self.start = start  # the belief of a restart; None without restarts
        self.noise = noise
        self.algorithm = algorithm
        self.chunked = chunked
        self.restarts = check_integer("restarts", restarts, 0)
        self._asked_noise: NoiseBlock | None = None
        self._buffer: Matrix | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_asked_noise": None, "_buffer": None}

    def _sample(self) -> Matrix | Population:
        state = self.state
        components, age = state.components or AlgorithmState(), state.iteration - state.began
        population = self.algorithm.draw(components, state.belief, self.noise, state.popsize, state.iteration, age)
        population, plan = population.within(self.box), population.plan
        if population.bytes > LARGEST_POPULATION if self.chunked is None else self.chunked:
            self._asked_noise = NoiseBlock(population)
            return population
        # Reuse the buffer: clearing new memory would cost as much as a pass over it.
        if self._buffer is None or len(self._buffer) < plan.rows:
            self._buffer = aligned((plan.rows, state.belief.dim), self.noise.dtype)
        kept = self._buffer[: plan.rows]
        candidates = population.block(0, plan.popsize, kept)
        self._asked_noise = NoiseBlock(population, kept)
        return candidates

    def _move(self, losses: Vector) -> Outcome:
        noise = self._asked_noise
        if noise is None or (np.isnan(losses[0]) and np.isnan(losses).all()):
            return self._unmoved()
        utilities = self.algorithm.shaping(losses)
        components = self.state.components or AlgorithmState()
        sample = Sample(noise.population, noise, losses, utilities, components.past)
        return self.algorithm.update(components, sample, self._info())

    def _info(self) -> IterationInfo:
        """Evaluations of this descent so far, and its budget if there is one and no restart may follow."""
        state, budget = self.state, math.inf
        spent = state.evaluations - state.began_evaluations
        if state.restarts < self.restarts:
            return IterationInfo(spent)
        for criterion in self.criteria:
            if isinstance(criterion, MaxFev):
                budget = min(budget, criterion.limit)
            elif isinstance(criterion, MaxIter):
                budget = min(budget, state.evaluations + (criterion.limit - state.iteration) * state.popsize)
        return IterationInfo(spent, budget - state.began_evaluations)

    def _after_tell(self) -> None:
        """Restart with twice the popsize if the descent has ended and restarts and budget are left."""
        state = self.state
        if self.start is None or state.restarts >= self.restarts or state.best_x is None:
            return
        reason = self.stop()
        if reason is None or reason.name not in ENDS_OF_DESCENT:
            return
        anew = replace(
            state,
            belief=self.start,
            components=None,
            popsize=2 * state.popsize,
            fault="",
            restarts=state.restarts + 1,
            began=state.iteration,
            began_evaluations=state.evaluations,
        )
        if first_met(self.criteria, anew, self.history) is None:
            self.state = anew
