"""Ask and tell: what all methods share, from checking what is told to the history and the result."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import OptimizeResult

from cones.beliefs import Belief
from cones.bounds import Box
from cones.checks import check_array, check_shape
from cones.errors import InputError, StateError
from cones.progress import COLUMNS, History, State
from cones.stopping import ALL_FAILED, RUNNING, Criterion, StopReason, first_met
from cones.types import Matrix, Vector

__all__ = ["Move", "Strategy"]


@dataclass(frozen=True)
class Move:
    """What an iteration did to the belief. NaN where a method has no such number."""

    belief: Belief
    memory: Any
    step: float
    kl: float = math.nan
    multiplier: float = math.nan
    gap: float = math.nan


class Strategy(ABC):
    """An optimizer by ask and tell. Made by `cones.ES`, `cones.NES`, `cones.CoNES` and `cones.CMA`.

    Attributes:
        state: belief, counters and best candidate after the last `tell`.
        history: one row per iteration; see `cones.progress.COLUMNS`.
    """

    # The arguments from which a checkpoint makes the strategy anew, besides `history`.
    PARTS: ClassVar[tuple[str, ...]] = ("method", "state", "box", "criteria")

    def __init__(
        self,
        method: str,
        state: State,
        box: Box | None,
        criteria: tuple[Criterion, ...],
        history: History | None = None,
    ) -> None:
        self.method = method
        self.state = state
        self.box = box
        self.criteria = criteria
        self.history = History() if history is None else history
        self._asked: tuple[int, Matrix] | None = None  # iteration, candidates
        self._clock = time.perf_counter()

    def __repr__(self) -> str:
        state = self.state
        return (
            f"{self.method}({state.belief!r}, popsize={self.popsize}, "
            f"iteration={state.iteration}, best={state.best_fun:.6g})"
        )

    @property
    @abstractmethod
    def popsize(self) -> int:
        """Candidates per iteration."""

    @abstractmethod
    def _sample(self) -> Matrix:
        """The candidates of this iteration, before bounds."""

    @abstractmethod
    def _move(self, losses: Vector) -> Move:
        """How the belief moves by the losses of the last sample; `_unmoved` if all of them are NaN."""

    def _unmoved(self) -> Move:
        return Move(self.state.belief, self.state.memory, step=0.0, kl=0.0)

    def ask(self) -> Matrix:
        """Candidates to evaluate, shape (popsize, n), read-only. The same until they are told."""
        iteration = self.state.iteration
        if self._asked is None or self._asked[0] != iteration:
            candidates = self._sample()
            if self.box is not None:
                candidates = self.box.reflect(candidates)
            candidates.flags.writeable = False  # `tell` relies on them
            self._asked = (iteration, candidates)
        return self._asked[1]

    def tell(self, X: ArrayLike, values: ArrayLike) -> None:
        """Move the belief by the losses of the candidates of the last `ask`.

        Args:
            X: what `ask` returned.
            values: popsize losses in the order of the candidates. NaN ranks worst.
        """
        candidates, losses, state = self._told(X), self._losses(values), self.state
        failed = np.isnan(losses)
        move = self._move(losses)
        best = int(np.where(failed, np.inf, losses).argmin())
        improved = losses[best] < state.best_fun
        new = replace(
            state,
            belief=move.belief,
            memory=move.memory,
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
                move.step,
                move.belief.spread(),
                move.kl,
                move.multiplier,
                move.gap,
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

    def _told(self, X: ArrayLike) -> Matrix:
        if self._asked is None:
            raise StateError("tell: expected candidates from ask(), but ask() was not called since the last tell()")
        _, candidates = self._asked
        if X is not candidates:
            told = check_array("X", X)
            check_shape("X", told, candidates.shape)
            if not np.array_equal(told, candidates):
                raise InputError("X: expected the candidates of the last ask(), unchanged and in order, got others")
        return candidates

    def _losses(self, values: Any) -> Vector:
        losses = check_array("values", values)
        if losses.ndim != 1 or losses.size != self.popsize:
            raise InputError(f"values: expected {self.popsize} losses, one per candidate, got shape {losses.shape}")
        return losses

    def _lap(self) -> float:
        now = time.perf_counter()
        lap, self._clock = now - self._clock, now
        return lap
