"""One iteration of ES, NES and CoNES, from belief to belief: the stages of the library in reading order."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from cones.beliefs import Belief
from cones.checks import check_integer, check_one_of
from cones.errors import InputError
from cones.estimators import score_function
from cones.estimators.shaping import SHAPINGS
from cones.kernels.buffers import aligned
from cones.kernels.spans import inner
from cones.optimizers import Optimizer
from cones.progress.stopping import ENDS_OF_DESCENT, MaxFev, MaxIter, first_met
from cones.sampling import AntitheticNoise, IndependentNoise, Noise, Population, Rows
from cones.steps import Refinement, Situation
from cones.strategy import Move, Strategy
from cones.types import Matrix, Vector

__all__ = ["Memory", "Pipeline"]

# Bytes of candidates beyond which they are made in chunks.
LARGEST_POPULATION = 2**30
# With `pairing="auto"` every so many iterations are of pairs, to see whether they should be again.
PAIRS_AT_LEAST_EVERY = 10
ODD_SHARE_RATE = 0.3


@dataclass(frozen=True)
class Memory:
    """What the stages of a pipeline remember from one iteration to the next."""

    optimizer: Any
    refinement: Any
    odd_share: float  # of the utilities' variance, as seen in pairs


class Pipeline(Strategy):
    """belief -> noise -> candidates -> (losses) -> shaping -> gradient -> refinement -> optimizer -> belief."""

    PARTS: ClassVar[tuple[str, ...]] = (
        *Strategy.PARTS, "start", "noise", "pairing", "shaping", "refinement", "optimizer", "chunked", "restarts"
    )  # fmt: skip

    def __init__(
        self,
        start: Belief | None,
        noise: Noise,
        shaping: str,
        refinement: Refinement,
        optimizer: Optimizer[Any],
        pairing: str = "fixed",
        chunked: bool | None = None,
        restarts: int = 0,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        for name, value, kind in (("noise", noise, Noise), ("refinement", refinement, Refinement)):
            if not isinstance(value, kind):
                raise InputError(f"{name}: expected a {kind.__name__}, got {value!r}")
        if not isinstance(optimizer, Optimizer):
            raise InputError(f"optimizer: expected an optimizer such as cones.Adam(0.1), got {optimizer!r}")
        check_one_of("shaping", shaping, tuple(SHAPINGS))
        self.start = start  # of a restart, if there may be one
        self.noise = noise
        self.pairing = check_one_of("pairing", pairing, ("fixed", "auto"))
        self.shaping = shaping
        self.refinement = refinement
        self.optimizer = optimizer
        self.chunked = chunked
        self.restarts = check_integer("restarts", restarts, 0)
        self._rows: Rows | None = None
        self._buffer: Matrix | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_rows": None, "_buffer": None}

    def _sample(self) -> Matrix | Population:
        belief, iteration, noise = self.state.belief, self.state.iteration, self._noise()
        population = Population(belief, noise, iteration, self.box)
        if population.bytes > LARGEST_POPULATION if self.chunked is None else self.chunked:
            self._rows = Rows(noise, iteration, belief.dim)
            return population
        # The same memory in every iteration: new memory would cost as much as a pass over it.
        if self._buffer is None or len(self._buffer) < noise.rows:
            self._buffer = aligned((noise.rows, belief.dim), noise.dtype)
        kept = self._buffer[: noise.rows]
        candidates = population.block(0, self.popsize, kept)
        self._rows = Rows(noise, iteration, belief.dim, kept)
        return candidates

    def _noise(self) -> Noise:
        """The noise of this iteration.

        Of N candidates in pairs, the mean's direction is known better than of N independent ones if less than half of
        the utilities' variance is odd in the noise.
        """
        state = self.state
        if self.pairing == "fixed":
            return replace(self.noise, popsize=state.popsize)
        odd = 0.0 if state.memory is None else state.memory.odd_share
        pairs = odd < 0.5 or (state.iteration - state.began) % PAIRS_AT_LEAST_EVERY == 0
        kind = AntitheticNoise if pairs else IndependentNoise
        return kind(self.noise.seed, state.popsize, self.noise.dtype, self.noise.table)

    def _move(self, losses: Vector) -> Move:
        state, rows = self.state, self._rows
        if rows is None or np.isnan(losses).all():
            return self._unmoved()
        belief, memory = state.belief, state.memory
        utilities = SHAPINGS[self.shaping](losses)
        odd_share = self._odd_share(rows.noise, utilities, 0.0 if memory is None else memory.odd_share)
        gradient = score_function(belief, rows, utilities)
        direction = self.refinement.refine(belief, gradient, self._situation(utilities))
        del gradient  # its arrays are large
        of_optimizer = self.optimizer.start(direction) if memory is None else memory.optimizer
        multiplier, gap, radii, of_refinement = direction.multiplier, direction.gap, direction.radii, direction.memory
        change, of_optimizer = self.optimizer.step(of_optimizer, direction)
        return Move(
            belief.moved(*change),
            Memory(of_optimizer, of_refinement, odd_share),
            math.sqrt(inner(change.shift, change.shift)),
            belief.kl_of_move(*change),
            multiplier,
            gap,
            radii,
        )

    def _odd_share(self, noise: Noise, utilities: Vector, before: float) -> float:
        if not isinstance(noise, AntitheticNoise):
            return before
        odd, even = (float(part @ part) for part in noise.fold(utilities))
        if not 0.0 < odd + even < math.inf:  # all tied, or beyond the range of floats
            return before
        return before + ODD_SHARE_RATE * (odd / (odd + even) - before)

    def _situation(self, utilities: Vector) -> Situation:
        state = self.state
        return Situation(
            popsize=state.popsize,
            unit=math.sqrt(float(utilities @ utilities) / utilities.size),
            spent=state.evaluations - state.began_evaluations,
            budget=self._budget(),
            memory=None if state.memory is None else state.memory.refinement,
        )

    def _budget(self) -> float:
        """Evaluations of this descent, if a criterion says when the run ends and no restart may follow."""
        state, budget = self.state, math.inf
        if state.restarts < self.restarts:
            return budget
        for criterion in self.criteria:
            if isinstance(criterion, MaxFev):
                budget = min(budget, criterion.limit)
            elif isinstance(criterion, MaxIter):
                budget = min(budget, state.evaluations + (criterion.limit - state.iteration) * state.popsize)
        return budget - state.began_evaluations

    def _told_all(self) -> None:
        """Start anew with twice the candidates, if the descent has ended and a restart and its budget are left."""
        state = self.state
        if self.start is None or state.restarts >= self.restarts or state.best_x is None:
            return
        reason = self.stop()
        if reason is None or reason.name not in ENDS_OF_DESCENT:
            return
        anew = replace(
            state,
            belief=self.start,
            memory=None,
            popsize=2 * state.popsize,
            fault="",
            restarts=state.restarts + 1,
            began=state.iteration,
            began_evaluations=state.evaluations,
        )
        if first_met(self.criteria, anew, self.history) is None:
            self.state = anew
