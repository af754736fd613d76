"""Ask and tell: what all methods share, from checking what is told to the history and the result."""

from __future__ import annotations

import copy
import math
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import OptimizeResult

from cones.beliefs import Belief
from cones.checks import check_array, check_shape
from cones.errors import InputError, StateError
from cones.kernels.buffers import Shelf
from cones.kernels.spans import extremes
from cones.progress.history import COLUMNS, History, State
from cones.progress.stopping import (
    ALL_FAILED,
    ALL_FAILED_IN_A_ROW,
    COLLAPSED,
    DIVERGED,
    FAULTS,
    RUNNING,
    Criterion,
    StopReason,
    first_met,
)
from cones.sampling import Population
from cones.space.bounds import Box
from cones.steps.step import NO_RADII, Radii
from cones.types import Matrix, Vector

__all__ = ["Move", "Strategy"]

# Beyond these the squares of candidates are about to leave the range of floats: it has collapsed, or diverged.
SMALLEST_SPREAD, LARGEST_SPREAD = 1e-145, 1e145


@dataclass(frozen=True)
class Move:
    """What an iteration did to the belief. NaN where a method has no such number."""

    belief: Belief
    memory: Any
    step: float
    kl: float = math.nan
    multiplier: float = math.nan
    gap: float = math.nan
    radii: Radii = NO_RADII


class Strategy(ABC):
    """An optimizer by ask and tell. Made by `cones.CoNES`, `cones.NES`, `cones.ES`, `cones.CMA` and `cones.SepCMA`.

    Attributes:
        state: belief, counters and best candidate after the last `tell`.
        history: one row per iteration; see `cones.progress.history.COLUMNS`.
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
        if not isinstance(state, State):
            raise InputError(f"state: expected a State, got {state!r}")
        if box is not None and box.lower.shape != state.belief.mean.shape:
            raise InputError(f"bounds: expected {state.belief.dim} coordinates, got {box.lower.size}")
        self.method = method
        self.state = state
        self.box = box
        self.criteria = criteria
        self.history = History() if history is None else history
        self._asked: tuple[int, Matrix | Population] | None = None  # iteration, candidates
        self._shelf = Shelf()
        self._clock = time.perf_counter()

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles: what was asked is asked again, and no memory is shared."""
        return {**self.__dict__, "_asked": None, "_shelf": Shelf(), "history": copy.deepcopy(self.history)}

    def __repr__(self) -> str:
        state = self.state
        return (
            f"{self.method}({state.belief!r}, popsize={self.popsize}, "
            f"iteration={state.iteration}, best={state.best_fun:.6g})"
        )

    @property
    def popsize(self) -> int:
        """Candidates per iteration."""
        return self.state.popsize

    @abstractmethod
    def _sample(self) -> Matrix | Population:
        """The candidates of this iteration, within bounds."""

    @abstractmethod
    def _move(self, losses: Vector) -> Move:
        """How the belief moves by the losses of the last sample; `_unmoved` if all of them are NaN."""

    def _unmoved(self) -> Move:
        return Move(self.state.belief, self.state.memory, step=0.0, kl=0.0)

    def ask(self) -> Matrix | Population:
        """Candidates to evaluate, shape (popsize, n), read-only. The same until they are told.

        Where they would take too much memory they are a `Population`, which gives them in chunks.
        """
        iteration = self.state.iteration
        if self._asked is None or self._asked[0] != iteration:
            candidates = self._sample()
            if isinstance(candidates, np.ndarray):
                candidates.flags.writeable = False  # `tell` relies on them
            self._asked = (iteration, candidates)
        return self._asked[1]

    def tell(self, X: ArrayLike | Population, values: ArrayLike) -> None:
        """Move the belief by the losses of the candidates of the last `ask`.

        Args:
            X: what `ask` returned.
            values: popsize losses in the order of the candidates. NaN ranks worst.
        """
        candidates, losses, state = self._told(X), self._losses(values), self.state
        failed = np.isnan(losses)
        self.history.trim(state.iteration)
        fault = ALL_FAILED.name if self._is_barren(failed) else ""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            with self._shelf.in_use():
                move = self._move(losses)
            spread = move.belief.spread()
            finite = losses[np.isfinite(losses)]
            mean_loss, deviation = (finite.mean(), finite.std()) if finite.size else (math.nan, math.nan)
        if not (SMALLEST_SPREAD < spread < LARGEST_SPREAD and all(map(math.isfinite, extremes(move.belief.mean)))):
            move, fault = self._unmoved(), (COLLAPSED if spread <= SMALLEST_SPREAD else DIVERGED).name
        told = np.flatnonzero(~failed)
        best = int(told[losses[told].argmin()]) if told.size else 0
        improved = losses[best] < state.best_fun or (state.best_x is None and not failed[best])  # infinite, maybe
        with self._shelf.in_use():
            best_x = self._candidate(candidates, best) if improved else state.best_x
        new = replace(
            state,
            belief=move.belief,
            memory=move.memory,
            iteration=state.iteration + 1,
            evaluations=state.evaluations + losses.size,
            best_x=best_x,
            best_fun=float(losses[best]) if improved else state.best_fun,
            seconds=state.seconds + self._lap(),
            fault=fault,
        )
        self.history.append(
            (
                new.evaluations,
                new.best_fun,
                mean_loss,
                deviation,
                move.step,
                move.belief.spread() if fault else spread,
                move.kl,
                move.multiplier,
                move.gap,
                *move.radii,
                int(failed.sum()),
                new.seconds,
            )
        )
        self.state = new
        self._asked = None
        self._told_all()

    def _is_barren(self, failed: NDArray[np.bool_]) -> bool:
        """Whether nothing has ever come back, or nothing for some time; one population may fall where all is NaN."""
        if not failed.all():
            return False
        before = self.history.last("failures", ALL_FAILED_IN_A_ROW - 1)
        return self.state.best_x is None or int((before >= failed.size).sum()) == ALL_FAILED_IN_A_ROW - 1

    @staticmethod
    def _candidate(candidates: Matrix | Population, index: int) -> Vector:
        return candidates[index] if isinstance(candidates, Population) else candidates[index].copy()

    def _told_all(self) -> None:  # noqa: B027 - most have nothing to do
        """After an iteration: a method may restart."""

    def stop(self) -> StopReason | None:
        """Why the run should stop, or None to go on."""
        if self.state.fault:
            return FAULTS[self.state.fault]
        return first_met(self.criteria, self.state, self.history)

    @property
    def result(self) -> OptimizeResult:
        """The best so far, as `scipy.optimize` reports it."""
        return self.result_with(self.stop() or RUNNING)

    def result_with(self, reason: StopReason) -> OptimizeResult:
        state = self.state
        return OptimizeResult(
            x=self._best_x(),
            fun=self._best_fun(),
            nfev=state.evaluations,
            nit=state.iteration,
            success=reason.success,
            status=reason.status,
            message=reason.message,
            stop=reason.name,
            history=self.history.columns(),
            belief=state.belief,
            mean=self._inside(state.belief.mean),
            restarts=state.restarts,
        )

    def intermediate_result(self) -> OptimizeResult:
        """The best so far and the history's last row, in constant time."""
        state = self.state
        return OptimizeResult(
            x=self._best_x(),
            fun=self._best_fun(),
            nit=state.iteration,
            belief=state.belief,
            nfev=state.evaluations,
            **{name: float(self.history.last(name, 1)[0]) for name in COLUMNS if state.iteration},
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write a checkpoint that `cones.load` turns into a strategy that goes on bit for bit."""
        from cones.run.checkpoint import save

        save(path, self)

    def _best_x(self) -> Vector:
        state = self.state
        return self._inside(state.belief.mean) if state.best_x is None else state.best_x.copy()

    def _best_fun(self) -> float:
        return math.nan if self.state.best_x is None else self.state.best_fun

    def _inside(self, x: Vector) -> Vector:
        return (x if self.box is None else self.box.reflect(x)).copy()

    def _told(self, X: ArrayLike | Population) -> Matrix | Population:
        if self._asked is None:
            raise StateError("tell: expected candidates from ask(), but ask() was not called since the last tell()")
        _, candidates = self._asked
        if X is not candidates:
            if isinstance(X, Population) or isinstance(candidates, Population):
                raise InputError("X: expected what the last ask() returned, got something else")
            told = check_array("X", X)
            check_shape("X", told, candidates.shape)
            if not np.array_equal(told, candidates):
                raise InputError("X: expected the candidates of the last ask(), unchanged and in order, got others")
        return candidates

    def _losses(self, values: Any) -> Vector:
        losses = check_array("values", values).copy()  # the caller may use the array again
        if losses.ndim != 1 or losses.size != self.popsize:
            raise InputError(f"values: expected {self.popsize} losses, one per candidate, got shape {losses.shape}")
        return losses

    def _lap(self) -> float:
        now = time.perf_counter()
        lap, self._clock = now - self._clock, now
        return lap
