"""One iteration of ES, NES and CoNES, from belief to belief: the stages of the library in reading order."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from cones.checks import check_one_of
from cones.errors import InputError
from cones.gradients import score_function
from cones.noise import Noise
from cones.optimizers import Optimizer
from cones.refine import Refinement
from cones.shaping import SHAPINGS
from cones.strategy import Move, Strategy
from cones.types import Matrix, Vector

__all__ = ["Pipeline"]


class Pipeline(Strategy):
    """belief -> noise -> candidates -> (losses) -> shaping -> gradient -> refinement -> optimizer -> belief."""

    PARTS: ClassVar[tuple[str, ...]] = (*Strategy.PARTS, "noise", "shaping", "refinement", "optimizer")

    def __init__(
        self, noise: Noise, shaping: str, refinement: Refinement, optimizer: Optimizer[Any], **common: Any
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
        self._rows: Matrix | None = None

    @property
    def popsize(self) -> int:
        return self.noise.popsize

    def _sample(self) -> Matrix:
        belief = self.state.belief
        self._rows = self.noise.draw(self.state.iteration, belief.dim)
        return self.noise.candidates(belief, self._rows)

    def _move(self, losses: Vector) -> Move:
        belief, rows = self.state.belief, self._rows
        if rows is None or np.isnan(losses).all():
            return self._unmoved()
        utilities = SHAPINGS[self.shaping](losses)
        gradient = score_function(belief, self.noise, rows, utilities)
        direction = self.refinement.refine(belief, gradient)
        memory = self.optimizer.start(direction) if self.state.memory is None else self.state.memory
        change, memory = self.optimizer.step(memory, direction)
        return Move(
            belief.moved(*change),
            memory,
            float(np.linalg.norm(change.shift)),
            belief.kl_of_move(*change),
            direction.multiplier,
            direction.gap,
        )
