"""One iteration of ES, NES and CoNES, from belief to belief: the stages of the library in reading order."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from cones.checks import check_one_of
from cones.errors import InputError
from cones.gradients import score_function
from cones.noise import Noise, Population, Rows
from cones.optimizers import Optimizer
from cones.refine import Refinement
from cones.shaping import SHAPINGS
from cones.strategy import Move, Strategy
from cones.tiles import inner
from cones.types import Matrix, Vector

__all__ = ["Pipeline"]


class Pipeline(Strategy):
    """belief -> noise -> candidates -> (losses) -> shaping -> gradient -> refinement -> optimizer -> belief."""

    PARTS: ClassVar[tuple[str, ...]] = (*Strategy.PARTS, "noise", "shaping", "refinement", "optimizer", "chunked")

    def __init__(
        self,
        noise: Noise,
        shaping: str,
        refinement: Refinement,
        optimizer: Optimizer[Any],
        chunked: bool = False,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        for name, value, kind in (("noise", noise, Noise), ("refinement", refinement, Refinement)):
            if not isinstance(value, kind):
                raise InputError(f"{name}: expected a {kind.__name__}, got {value!r}")
        if not isinstance(optimizer, Optimizer):
            raise InputError(f"optimizer: expected an optimizer such as cones.Adam(0.1), got {optimizer!r}")
        check_one_of("shaping", shaping, tuple(SHAPINGS))
        self.noise = noise
        self.shaping = shaping
        self.refinement = refinement
        self.optimizer = optimizer
        self.chunked = chunked
        self._rows: Rows | None = None

    @property
    def popsize(self) -> int:
        return self.noise.popsize

    def _sample(self) -> Matrix | Population:
        belief, iteration = self.state.belief, self.state.iteration
        population = Population(belief, self.noise, iteration, self.box)
        if self.chunked:
            self._rows = Rows(self.noise, iteration, belief.dim)
            return population
        # The same memory in every iteration: new memory would cost as much as a pass over it.
        kept = None if self._rows is None else self._rows.kept
        if kept is None:
            kept = np.empty((self.noise.rows, belief.dim), self.noise.dtype)
        candidates = population.block(0, self.popsize, kept)
        self._rows = Rows(self.noise, iteration, belief.dim, kept)
        return candidates

    def _move(self, losses: Vector) -> Move:
        belief, rows = self.state.belief, self._rows
        if rows is None or np.isnan(losses).all():
            return self._unmoved()
        utilities = SHAPINGS[self.shaping](losses)
        gradient = score_function(belief, rows, utilities)
        direction = self.refinement.refine(belief, gradient)
        del gradient  # its arrays are large
        memory = self.optimizer.start(direction) if self.state.memory is None else self.state.memory
        multiplier, gap = direction.multiplier, direction.gap
        change, memory = self.optimizer.step(memory, direction)
        return Move(
            belief.moved(*change),
            memory,
            math.sqrt(inner(change.shift, change.shift)),
            belief.kl_of_move(*change),
            multiplier,
            gap,
        )
