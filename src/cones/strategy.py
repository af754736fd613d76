"""One iteration, from belief to belief: the stages of the library in reading order."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from os import PathLike
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import OptimizeResult

from cones.bounds import Box
from cones.checks import check_array, check_shape
from cones.errors import InputError, StateError
from cones.gradients import score_function
from cones.noise import Noise
from cones.optimizers import Optimizer
from cones.progress import COLUMNS, History, State
from cones.refine import Refinement
from cones.shaping import SHAPINGS
from cones.stopping import ALL_FAILED, RUNNING, Criterion, StopReason, first_met
from cones.types import Matrix, Vector

__all__ = ["Strategy"]

Memory = TypeVar("Memory")


class Strategy(Generic[Memory]):
    """An evolution strategy by ask and tell. Made by `cones.ES`, `cones.NES` and `cones.CoNES`.

    Attributes:
        state: belief, counters and best candidate after the last `tell`.
        history: one row per iteration; see `cones.progress.COLUMNS`.
    """

    def __init__(
        self,
        method: str,
        state: State,
        noise: Noise,
        shaping: str,
        refinement: Refinement,
        optimizer: Optimizer[Memory],
        box: Box | None,
        criteria: tuple[Criterion, ...],
        history: History | None = None,
    ) -> None:
        self.method = method
        self.state = state
        self.noise = noise
        self.shaping = shaping
        self.refinement = refinement
        self.optimizer = optimizer
        self.box = box
        self.criteria = criteria
        self.history = History() if history is None else history
        self._asked: tuple[int, Matrix, Matrix] | None = None  # iteration, noise, candidates
        self._clock = time.perf_counter()

    def __repr__(self) -> str:
        state = self.state
        return (
            f"{self.method}({state.belief!r}, popsize={self.noise.popsize}, "
            f"iteration={state.iteration}, best={state.best_fun:.6g})"
        )

    @property
    def popsize(self) -> int:
        return self.noise.popsize

    def ask(self) -> Matrix:
        """Candidates to evaluate, shape (popsize, n), read-only. The same until they are told."""
        iteration, belief = self.state.iteration, self.state.belief
        if self._asked is None or self._asked[0] != iteration:
            noise = self.noise.draw(iteration, belief.dim)
            candidates = self.noise.candidates(belief, noise)
            if self.box is not None:
                candidates = self.box.reflect(candidates)
            candidates.flags.writeable = False  # `tell` relies on them
            self._asked = (iteration, noise, candidates)
        return self._asked[2]

    def tell(self, X: ArrayLike, values: ArrayLike) -> None:
        """Move the belief by the losses of the candidates of the last `ask`.

        Args:
            X: what `ask` returned.
            values: popsize losses in the order of the candidates. NaN ranks worst.
        """
        candidates, noise = self._told(X)
        losses = self._losses(values)
        state = self.state
        failed = np.isnan(losses)

        if failed.all():
            belief, memory, direction = state.belief, state.memory, None
            step = kl = 0.0
        else:
            utilities = SHAPINGS[self.shaping](losses)
            gradient = score_function(state.belief, self.noise, noise, utilities)
            direction = self.refinement.refine(state.belief, gradient)
            before = self.optimizer.start(direction) if state.memory is None else state.memory
            change, memory = self.optimizer.step(before, direction)
            belief = state.belief.moved(*change)
            step, kl = float(np.linalg.norm(change.shift)), state.belief.kl_of_move(*change)

        best = int(np.where(failed, np.inf, losses).argmin())
        improved = losses[best] < state.best_fun
        new = replace(
            state,
            belief=belief,
            memory=memory,
            iteration=state.iteration + 1,
            evaluations=state.evaluations + losses.size,
            best_x=candidates[best].copy() if improved else state.best_x,
            best_fun=float(losses[best]) if improved else state.best_fun,
            seconds=state.seconds + self._lap(),
        )
        finite = losses[np.isfinite(losses)]
        self.history.trim(state.iteration)
        self.history.append(
            (
                new.evaluations,
                new.best_fun,
                finite.mean() if finite.size else math.nan,
                finite.std() if finite.size else math.nan,
                step,
                belief.spread(),
                kl,
                math.nan if direction is None else direction.multiplier,
                math.nan if direction is None else direction.gap,
                int(failed.sum()),
                new.seconds,
            )
        )
        self.state = new
        self._asked = None

    def stop(self) -> StopReason | None:
        """Why the run should stop, or None to go on."""
        if self.state.iteration and self.history.last("failures", 1)[0] == self.popsize:
            return ALL_FAILED
        return first_met(self.criteria, self.state, self.history)

    @property
    def result(self) -> OptimizeResult:
        """The best so far, as `scipy.optimize` reports it."""
        return self.result_with(self.stop() or RUNNING)

    def result_with(self, reason: StopReason) -> OptimizeResult:
        state = self.state
        return OptimizeResult(
            x=self._best_x(),
            fun=state.best_fun if state.best_x is not None else math.nan,
            nfev=state.evaluations,
            nit=state.iteration,
            success=reason.success,
            status=reason.status,
            message=reason.message,
            stop=reason.name,
            history=self.history.columns(),
            belief=state.belief,
        )

    def intermediate_result(self) -> OptimizeResult:
        """The best so far and the history's last row, in constant time."""
        state = self.state
        return OptimizeResult(
            x=self._best_x(),
            fun=state.best_fun,
            nit=state.iteration,
            belief=state.belief,
            nfev=state.evaluations,
            **{name: float(self.history.last(name, 1)[0]) for name in COLUMNS if state.iteration},
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write a checkpoint that `cones.load` turns into a strategy that goes on bit for bit."""
        from cones.checkpoint import save

        save(path, self)

    def _best_x(self) -> Vector:
        state = self.state
        if state.best_x is not None:
            return state.best_x.copy()
        return (state.belief.mean if self.box is None else self.box.reflect(state.belief.mean)).copy()

    def _told(self, X: ArrayLike) -> tuple[Matrix, Matrix]:
        if self._asked is None:
            raise StateError("tell: expected candidates from ask(), but ask() was not called since the last tell()")
        _, noise, candidates = self._asked
        if X is not candidates:
            told = check_array("X", X)
            check_shape("X", told, candidates.shape)
            if not np.array_equal(told, candidates):
                raise InputError("X: expected the candidates of the last ask(), unchanged and in order, got others")
        return candidates, noise

    def _losses(self, values: Any) -> Vector:
        losses = check_array("values", values)
        if losses.ndim != 1 or losses.size != self.popsize:
            raise InputError(f"values: expected {self.popsize} losses, one per candidate, got shape {losses.shape}")
        return losses

    def _lap(self) -> float:
        now = time.perf_counter()
        lap, self._clock = now - self._clock, now
        return lap
