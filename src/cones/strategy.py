"""Ask and tell: what all methods share, from input checks to the history."""

from __future__ import annotations

import copy
import math
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from cones import storage
from cones.answers import Answers
from cones.beliefs import Belief, StepStatus
from cones.checks import check_array, check_integer, check_kind, check_same, check_shape
from cones.component import changed
from cones.errors import CheckpointError, InputError, MissingExtraError, StateError
from cones.integers import at_mode
from cones.kernels.buffers import BufferPool
from cones.progress import History, Outcome, State
from cones.progress.stopping import (
    COLLAPSED,
    DIVERGED,
    FAILED_IN_A_ROW,
    FAULTS,
    NO_FINITE_LOSS,
    NO_STEP,
    NO_STEP_IN_A_ROW,
    Criterion,
    StopReason,
    first_met,
)
from cones.sampling import Population
from cones.space.bounds import Box
from cones.space.lagrangian import Lagrangian, Told, checked_rows, told_from, violations_of
from cones.space.space import Space
from cones.types import Matrix, Vector

__all__ = ["CHECKPOINT", "Strategy"]

CHECKPOINT = "cones checkpoint", 8  # format name and version
# Outside this range, squares of candidates soon underflow or overflow: the belief has collapsed or diverged.
SMALLEST_SPREAD, LARGEST_SPREAD = 1e-145, 1e145


class Strategy(Answers):
    """An optimizer with ask and tell, created by `cones.CoNES(...)`, `NES`, `ES`, `CMA` or `SepCMA`.

    Attributes:
        method: the name of the method.
        state: belief, counters and best candidate after the last `tell`.
        history: one row of numbers per iteration; see `cones.progress.COLUMNS`.
    """

    # The constructor arguments that a checkpoint stores.
    SAVED_FIELDS: ClassVar[tuple[str, ...]] = ("method", "state", "box", "criteria", "history", "space")

    def __init__(
        self,
        method: str,
        state: State,
        box: Box | None,
        criteria: tuple[Criterion, ...],
        history: History | None = None,
        space: Space | None = None,
    ) -> None:
        check_kind("state", state, State)
        check_kind("belief", state.belief, Belief)
        check_kind("criteria", criteria, tuple)
        for criterion in criteria:
            check_kind("criteria", criterion, Criterion)
        check_kind("box", box, (Box, type(None)))
        check_kind("history", history, (History, type(None)))
        check_kind("space", space, (Space, type(None)))
        if space is not None and space.dim != state.belief.dim:
            raise InputError(f"space: expected {state.belief.dim} coordinates, got {space.dim}")
        if box is not None and box.lower.shape != state.belief.mean.shape:
            raise InputError(f"bounds: expected {state.belief.dim} coordinates, got {box.lower.size}")
        self.method = method
        self.state = state
        self.box = box
        self.criteria = criteria
        self.space = space
        self.history = History() if history is None else history
        self._asked: tuple[int, Matrix | Population] | None = None  # iteration, candidates
        self._named: list[dict[str, Any]] | None = None  # the same by name
        self._pool = BufferPool()
        self._clock = time.perf_counter()
        self._loaded = False  # from a checkpoint, and no iteration since

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles: drop the asked candidates, which `ask` reproduces, and share no arrays."""
        return {
            **self.__dict__,
            "_asked": None,
            "_named": None,
            "_pool": BufferPool(),
            "history": copy.deepcopy(self.history),
        }

    def stored(self) -> dict[str, Any]:
        self.history.trim(self.state.iteration)
        return {name: getattr(self, name) for name in self.SAVED_FIELDS}

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Self:
        strategy = cls(**{name: parts[name] for name in cls.SAVED_FIELDS})
        check_kind("method", strategy.method, str)
        if len(strategy.history) != strategy.state.iteration:
            raise InputError(f"history: expected {strategy.state.iteration} rows, got {len(strategy.history)}")
        if strategy.state.fault and strategy.state.fault not in FAULTS:
            raise InputError(f"fault: expected one of {', '.join(FAULTS)}, got {strategy.state.fault!r:.80}")
        strategy._loaded = True
        return strategy

    @abstractmethod
    def _sample(self) -> Matrix | Population:
        """The candidates of this iteration, within bounds."""

    @abstractmethod
    def _move(self, losses: Vector, told: Told | None = None) -> Outcome:
        """The outcome of an iteration with these losses; `_unmoved` if none of them is below +inf.

        With constraints, the losses are merits, and `told` is what they come from.
        """

    def new_lagrangian(self, count: int) -> Lagrangian:
        """The Lagrangian before the first iteration, for a number of constraints."""
        return Lagrangian.start(count)

    def begin_constraints(self, count: int) -> None:
        """Begin a run with constraints. Known evaluations are not its result: whether they are feasible is unknown."""
        self.state = replace(self.state, lagrangian=self.new_lagrangian(count), best_x=None, best_fun=math.inf)

    def _beyond(self, candidates: Matrix | Population, lagrangian: Lagrangian) -> Matrix:
        """How far each candidate was beyond each bound before it was moved inside; negative if it was inside."""
        return np.empty((self.popsize, 0))

    def _unmoved(self) -> Outcome:
        return Outcome(self.state.belief, self.state.components, {"step": 0.0, "kl": 0.0})

    def _fitting(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function. In the first iteration from a checkpoint an error means that its states do not fit."""
        if not self._loaded:
            return call(*arguments)
        try:
            return call(*arguments)
        except (CheckpointError, MissingExtraError):
            raise
        except Exception as error:
            raise CheckpointError(
                f"the states in the checkpoint do not fit together ({type(error).__name__}: {error})"
            ) from error

    def ask(self, count: int | None = None) -> Any:
        """Candidates to evaluate, read-only.

        Without `count`, the popsize candidates of this iteration, shape (popsize, n); repeated calls before `tell`
        return the same ones. If they would take too much memory, they are a `Population`, which yields them in chunks.
        In a `cones.Space` they are a list of dicts.

        With `count`, that many candidates that nobody has, shape (count, n): every call returns others. They can be
        told in any order and in any parts, late or never, and the belief moves whenever the results are worth a
        population. After `cones.load`, candidates that were out come first.

        Example:
            >>> import cones
            >>> es = cones.CoNES([1.0, 2.0], rng=0)
            >>> first, second = es.ask(1), es.ask(1)
            >>> es.tell(second, (second**2).sum(axis=1))
            >>> es.result.nfev
            1
        """
        if count is not None:
            return self._ask_some(check_integer("count", count, 1))
        candidates = self.candidates()
        if self.space is None:
            return candidates
        if self._named is None:
            self._named = [self.space.decode(row) for row in np.asarray(candidates)]
        return self._named

    def candidates(self) -> Matrix | Population:
        """The candidates of `ask()` as vectors, in a space as well."""
        iteration = self.state.iteration
        if self._asked is None or self._asked[0] != iteration:
            candidates: Matrix | Population = self._fitting(self._sample)
            if isinstance(candidates, np.ndarray):
                candidates.flags.writeable = False  # `tell` relies on their values
            self._asked, self._named = (iteration, candidates), None
        return self._asked[1]

    def tell(self, X: Any, values: ArrayLike, constraints: ArrayLike | None = None) -> None:
        """Update the belief with losses.

        Args:
            X: the return value of `ask`, or some of its rows in any order. Candidates are known by their values.
            values: one loss per row of X. NaN ranks worst. If none of a population is finite, the belief stays as it
                is.
            constraints: for each candidate a row of numbers that are at most 0 if it is feasible, shape (popsize, m).
                An equality h = 0 is two of them, h and -h. In every iteration, or in none. Only for whole populations.
        """
        if self._is_part(X):
            if constraints is not None or self.state.lagrangian is not None:
                raise InputError(
                    "X: expected the whole population with constraints, unchanged and in order, got others"
                )
            self._tell_some(X, values)
            return
        candidates, losses = self._told(X), self._losses(values)
        if (rows := self._constraints(constraints, self.popsize)) is not None:
            if self.state.lagrangian is None:
                self.begin_constraints(rows.shape[1])
            lagrangian = self.state.lagrangian
            assert lagrangian is not None
            beyond = self._beyond(candidates, lagrangian)
            belief = self.state.belief
            typical = None if isinstance(candidates, Population) else at_mode(candidates, belief, self.box)
            told = told_from(losses, rows, beyond, lagrangian, belief.dim, typical)
            self._note("whole", losses.tolist(), rows.tolist())
            self._advance(told.losses, self._move, candidates, losses.size, told)
            return
        self._note("whole", losses.tolist())
        self._advance(losses, self._move, candidates, losses.size)

    def _is_part(self, X: ArrayLike | Population) -> bool:
        """True if X is to be told row by row, and not as the population of this iteration."""
        return False

    def _ask_some(self, count: int) -> Matrix:
        raise InputError(f"count: expected none with {self.method}, which asks for whole populations, got {count}")

    def _tell_some(self, X: Any, values: ArrayLike) -> None:
        raise NotImplementedError

    def _note(self, kind: str, *content: Any) -> None:
        """Note an event for the journal of the run, if there is one."""

    def _advance(
        self,
        losses: Vector,
        move: Callable[[Vector, Told | None], Outcome],
        candidates: Matrix | Population,
        evaluations: int,
        told: Told | None = None,
    ) -> None:
        """An iteration with these losses; `evaluations` of them have not been counted yet."""
        state = self.state
        merits = losses if told is None else told.merits()
        failed = np.isnan(losses)
        failures = int(np.count_nonzero(failed))
        self.history.trim(state.iteration)
        lost = not (merits < math.inf).any()
        lost_in_a_row = state.failed_in_a_row + 1 if lost else 0
        fault = NO_FINITE_LOSS.name if lost and (state.best_fun == math.inf or lost_in_a_row >= FAILED_IN_A_ROW) else ""
        with self._pool, np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            outcome: Outcome = self._fitting(move, merits, told)
            spread = outcome.belief.spread()
            mean_loss, deviation = _mean_and_deviation(merits)
            if not (SMALLEST_SPREAD < spread < LARGEST_SPREAD and outcome.belief.is_finite()):
                fault = (COLLAPSED if spread <= SMALLEST_SPREAD else DIVERGED).name
                outcome, spread = self._unmoved(), state.belief.spread()
            elif not outcome.belief.is_resolved():
                fault = fault or COLLAPSED.name
            excess = None if told is None else state.excess(told.violations())
            if excess is not None:
                best = int(np.lexsort((losses, np.where(failed, math.inf, excess)))[0])
            else:
                best = int(np.where(failed, math.inf, losses).argmin()) if failures else int(losses.argmin())
            if failed[best]:  # all other losses are infinite
                best = int((~failed).argmax())
            violation = 0.0 if told is None else float(told.violations()[best])
            improved = self.improves(float(losses[best]), violation, state.best_fun, state.violation)
            improved = improved or (state.best_x is None and not failed[best])  # inf counts
            best_x = self._candidate(candidates, best) if improved else state.best_x
        if not outcome.status.ok and self._no_step_is_found():
            fault = NO_STEP.name
        descent = state.descent
        if self.improves(float(losses[best]), violation, descent.best, descent.violation):
            descent = changed(descent, best=float(losses[best]), violation=violation, improved=state.iteration + 1)
        new: State = changed(
            state,
            belief=outcome.belief,
            components=outcome.state,
            iteration=state.iteration + 1,
            evaluations=state.evaluations + evaluations,
            best_x=best_x,
            best_fun=float(losses[best]) if improved else state.best_fun,
            violation=violation if improved else state.violation,
            lagrangian=None if told is None else told.lagrangian,
            seconds=state.seconds + self._lap(),
            fault=fault,
            failed_steps=state.failed_steps + (not outcome.status.ok),
            failed_populations=state.failed_populations + lost,
            failed_in_a_row=lost_in_a_row,
            descent=descent,
        )
        row = {
            "evaluations": new.evaluations,
            "best": new.best_fun,
            "mean_loss": mean_loss,
            "loss_deviation": deviation,
            "spread": spread,
            "step": 0.0,
            "kl": 0.0,
            "step_status": outcome.status.code,
            "failures": failures,
            "popsize": losses.size,
            "restart": state.restarts,
            "seconds": new.seconds,
            **outcome.columns,
        }
        if excess is not None:
            row |= {"violation": new.violation, "feasible": float((excess == 0.0).mean())}
        self.history.append(row)
        self.state = new
        self._asked, self._named, self._loaded = None, None, False
        self.restart_if_ended()
        if not outcome.status.ok and not state.failed_steps:
            warnings.warn(
                f"iteration {state.iteration}: {outcome.status.value} (shown once; result.failed_steps counts them)",
                RuntimeWarning,
                stacklevel=3,
            )
        if lost and not state.failed_populations and not fault:
            warnings.warn(
                f"iteration {state.iteration}: no loss of the population is finite; the run stops after "
                f"{FAILED_IN_A_ROW} such populations in a row (shown once; history['mean_loss'] is NaN in them)",
                RuntimeWarning,
                stacklevel=3,
            )

    def _no_step_is_found(self) -> bool:
        """True if the solver has failed in each of the last ten iterations, including this one."""
        before = self.history.last("step_status", NO_STEP_IN_A_ROW - 1)
        return int((before == StepStatus.FAILED.code).sum()) == NO_STEP_IN_A_ROW - 1

    def tell_start(self, value: float, constraints: ArrayLike | None = None) -> None:
        """Count the start: `value` is the loss of `es.result.mean`, evaluated before the first `ask`.

        It is one evaluation, and the start is the best candidate until a better one is told. `minimize` does this.
        `constraints` is its row of constraints, if there are any.

        Example:
            >>> import cones
            >>> es = cones.CoNES([1.0, 2.0], rng=0)
            >>> es.tell_start(5.0)
            >>> es.result.fun, es.result.nfev
            (5.0, 1)
        """
        state = self.state
        if state.evaluations:
            raise StateError(f"tell_start: expected before the first tell(), got {state.evaluations} evaluations")
        loss = float(check_array("value", value).reshape(()))
        row = None if constraints is None else check_array("constraints", constraints).reshape(1, -1)
        sides = self._constraints(row, 1)
        self._note("start", loss, *([] if row is None else [row.tolist()]))
        if sides is not None and state.lagrangian is None:
            self.begin_constraints(sides.shape[1])
            state = self.state
        counted = replace(state, evaluations=1)
        violation = 0.0 if sides is None else float(violations_of(sides)[0])
        # A space may have known evaluations.
        better = state.best_x is None or self.improves(loss, violation, state.best_fun, state.violation)
        if not math.isnan(loss) and violation < math.inf and better:
            counted = replace(counted, best_x=self.start_point(), best_fun=loss, violation=violation)
        self.state = counted

    def restart_if_ended(self) -> None:
        """Restart if the descent has ended and budget is left. Called after each iteration; by default, nothing."""

    def stop(self) -> StopReason | None:
        """Why the run should stop, or None to continue."""
        if self.state.fault:
            return FAULTS[self.state.fault]
        return first_met(self.criteria, self.state, self.history)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a checkpoint. `cones.load` returns a strategy that continues bit for bit."""
        storage.write(path, *CHECKPOINT, {"strategy": self, "run": {}})

    def _told(self, X: Any) -> Matrix | Population:
        if self._asked is None:
            raise StateError("tell: expected a call of ask() since the last tell(), got none")
        _, candidates = self._asked
        if X is not candidates and self.space is not None:  # also if X is what ask() returned: dicts can be changed
            given = X if isinstance(X, (list, tuple)) else []
            if len(given) != self.popsize:
                raise InputError(f"X: expected the {self.popsize} candidates of the last ask(), got {X!r:.80}")
            rows = [values if isinstance(values, np.ndarray) else self.space.encode(values) for values in given]
            if not np.allclose(np.stack(rows), self._box_of(candidates), rtol=1e-9, atol=1e-12):
                raise InputError("X: expected the candidates of the last ask(), unchanged and in order, got others")
        elif X is not candidates:
            if isinstance(X, Population) or isinstance(candidates, Population):
                raise InputError(f"X: expected the return value of the last ask(), got another {type(X).__name__}")
            told = check_array("X", X)
            check_shape("X", told, candidates.shape)
            check_same("X", told, candidates)
        return candidates

    def _box_of(self, candidates: Matrix | Population) -> Matrix:
        """The candidates as their values encode them."""
        assert self.space is not None
        return np.stack([self.space.encode(self.space.decode(row)) for row in np.asarray(candidates)])

    def _losses(self, values: Any) -> Vector:
        losses = check_array("values", values).copy()  # the caller may reuse the array
        if losses.ndim != 1 or losses.size != self.popsize:
            raise InputError(f"values: expected {self.popsize} losses, one per candidate, got shape {losses.shape}")
        losses.flags.writeable = False  # components see them
        return losses

    def _constraints(self, constraints: ArrayLike | None, count: int) -> Matrix | None:
        return checked_rows(constraints, count, self.state.lagrangian, begun=self.state.evaluations > 0)

    def _lap(self) -> float:
        now = time.perf_counter()
        lap, self._clock = now - self._clock, now
        return lap


def _mean_and_deviation(losses: Vector) -> tuple[float, float]:
    """Mean and standard deviation of the finite losses; NaN if there are none."""
    total = float(np.add.reduce(losses))
    if not math.isfinite(total):
        losses = losses[np.isfinite(losses)]
        if not losses.size:
            return math.nan, math.nan
        total = float(np.add.reduce(losses))
    mean = total / losses.size
    centred = losses - mean
    return mean, math.sqrt(float(np.add.reduce(centred * centred)) / losses.size)
