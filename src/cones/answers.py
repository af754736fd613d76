"""What a run says about itself: its answers, its result, and the sentences of its message."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from cones.beliefs import Belief
from cones.component import Storable
from cones.markup import card, curves
from cones.progress import History, State
from cones.progress.stopping import ROUNDING, RUNNING, Criterion, FTol, MaxFev, StopReason
from cones.result import Result
from cones.sampling import Population
from cones.space.bounds import Box
from cones.space.lagrangian import violations_of
from cones.space.space import Space
from cones.types import Matrix, Vector

__all__ = ["Answers"]

LEVEL_OVER = 10  # iterations; see `Answers.best_belief`
INFEASIBLE = 11  # the status of a run that has converged to a point that is not feasible


class Answers(Storable, ABC):
    """The part of a strategy that reads its state and history and changes neither."""

    method: str
    state: State
    box: Box | None
    criteria: tuple[Criterion, ...]
    space: Space | None
    history: History

    @abstractmethod
    def stop(self) -> StopReason | None:
        """Why the run should stop, or None to continue."""

    @abstractmethod
    def candidates(self) -> Matrix | Population:
        """The candidates of this iteration as vectors."""

    def __repr__(self) -> str:
        state = self.state
        return (
            f"{self.method}({state.belief!r}, popsize={self.popsize}, "
            f"iteration={state.iteration}, best={state.best_fun:.6g})"
        )

    def _repr_html_(self) -> str:
        state, history = self.state, self.history
        rows = [
            ("belief", repr(state.belief)),
            ("best", f"{state.best_fun:.6g}"),
            ("spent", f"{state.evaluations} evaluations, {state.iteration} iterations of {self.popsize}"),
            ("stop", reason.message if (reason := self.stop()) else "no: ask for the next candidates"),
        ]
        lines = {"best": history["best"], "mean loss": history["mean_loss"]}
        return card(self.method, rows, curves(history["evaluations"], lines, "evaluations"))

    @property
    def popsize(self) -> int:
        """Candidates per iteration."""
        return self.state.popsize

    @property
    def result(self) -> Result:
        """The result so far, a `scipy.optimize.OptimizeResult`."""
        return self.result_with(self.stop() or RUNNING)

    def result_with(self, reason: StopReason) -> Result:
        state, (x, mean) = self.state, self.answers()
        met = reason.success and (reason.name == "ftarget" or self.ends_feasible())
        success = (met or self._has_converged()) and state.feasible
        result = Result(
            x=self.shown(x),
            fun=self._best_fun(),
            nfev=state.evaluations,
            nit=state.iteration,
            success=success,
            status=reason.status if success or reason.status else INFEASIBLE,
            message=self._why(reason) + self._about_restarts() + self._about_failed_steps() + self._about_violation(),
            stop=reason.name,
            method=self.method,
            history=self.history.columns(),
            belief=self.best_belief(),
            mean=self.shown(mean) if self.space is not None else self._inside(self.best_belief().mean),
            restarts=state.restarts,
            failed_steps=state.failed_steps,
        )
        if state.lagrangian is not None:
            result.maxcv = result.constr_violation = math.nan if state.best_x is None else state.violation
        return result

    def add_partial(self, result: OptimizeResult, losses: Vector, constraints: Matrix | None) -> None:
        """Add to a result the known losses of a population that was not told; the others are NaN."""
        known = ~np.isnan(losses)
        if not known.any():
            return
        result.nfev += int(known.sum())
        violations = np.zeros(losses.size) if constraints is None else violations_of(constraints)
        best = int(np.lexsort((losses, self.state.excess(np.where(known, violations, math.inf))))[0])
        loss, violation = float(losses[best]), float(violations[best])
        fun = math.inf if math.isnan(result.fun) else result.fun
        if self.improves(loss, violation, fun, self.state.violation):
            result.x, result.fun = self.shown(self._candidate(self.candidates(), best)), loss
            if constraints is not None:
                result.maxcv = result.constr_violation = violation

    def ends_feasible(self) -> bool:
        """True if the last population has a feasible candidate, or there are no constraints."""
        return "feasible" not in self.history or self.history.latest("feasible") > 0.0

    def improves(self, loss: float, violation: float, best: float, best_violation: float) -> bool:
        """True if a candidate is better: it is feasible, or violates the constraints less, and then by its loss."""
        if math.isnan(loss) or violation == math.inf:
            return False
        if best == math.inf or violation == best_violation:
            return loss < best
        excess, best_excess = (float(self.state.excess(v)) for v in (violation, best_violation))
        return (excess, loss) < (best_excess, best)

    def best_belief(self) -> Belief:
        """The belief of the best descent: the current one, or the final one of a descent before a restart.

        The level of a descent's losses decides, which noise does not bias: the median of the last mean losses.
        """
        earlier = self.state.earlier
        return earlier.belief if earlier.belief is not None and earlier.level <= self._level() else self.state.belief

    def start_point(self) -> Vector:
        """The mode of the belief within bounds, the mean of a Gaussian; x0 before the first iteration."""
        return self._inside(self.state.belief.mode())

    def answers(self) -> tuple[Vector, Vector]:
        """The two answers of a run: the best candidate, and the mode of the best descent's belief."""
        return self._best_x(), self._inside(self.best_belief().mode())

    def shown(self, x: Vector) -> Any:
        """A candidate as the user sees it: in a space, its values by name."""
        return x if self.space is None else self.space.decode(x)

    def _level(self) -> float:
        """The median of the mean losses of the descent's last ten iterations; infinite if none is finite."""
        losses = self.history.last("mean_loss", min(LEVEL_OVER, self.state.iteration - self.state.began) or 1)
        losses = losses[np.isfinite(losses)]
        return float(np.median(losses)) if losses.size and self.state.iteration > self.state.began else math.inf

    def _has_converged(self) -> bool:
        """True if the best loss is that of a descent that ended by a tolerance before a restart."""
        state = self.state
        ftol = max((criterion.limit for criterion in self.criteria if isinstance(criterion, FTol)), default=0.0)
        return state.earlier.converged < math.inf and state.earlier.converged - state.best_fun <= max(
            ftol, ROUNDING * abs(state.best_fun)
        )

    def _why(self, reason: StopReason) -> str:
        """The message of a reason; of a budget also the rest that is too small for a population."""
        limits = [criterion.limit for criterion in self.criteria if isinstance(criterion, MaxFev)]
        left = int(min(limits, default=0.0)) - self.state.evaluations
        if reason.name != MaxFev.name or left <= 0:
            return reason.message
        return f"{reason.message.removesuffix('.')} but for {left}: a population takes {self.popsize}."

    def _about_restarts(self) -> str:
        restarts = self.state.restarts
        if not restarts:
            return ""
        converged = ", and the descent with the best loss has converged" if self._has_converged() else ""
        return f" There {'was 1 restart' if restarts == 1 else f'were {restarts} restarts'}{converged}."

    def _about_failed_steps(self) -> str:
        failed = self.state.failed_steps
        return f" The solver found no step in {failed} of {self.state.iteration} iterations." if failed else ""

    def _about_violation(self) -> str:
        state = self.state
        if state.best_x is None:
            return "" if state.lagrangian is None else " No candidate had a finite loss and finite constraints."
        if state.feasible:
            return "" if self.ends_feasible() else " The last population is not feasible; x is an earlier candidate."
        by = f"{state.violation:.3g} (catol = {state.catol:g})"
        return f" No candidate was feasible: x violates a constraint by {by}."

    def intermediate_result(self) -> OptimizeResult:
        """The best candidate and the last row of the history, in constant time."""
        state = self.state
        return OptimizeResult(
            x=self.shown(self._best_x()),
            fun=self._best_fun(),
            nit=state.iteration,
            belief=state.belief,
            nfev=state.evaluations,
            **{name: self.history.latest(name) for name in self.history.names if state.iteration},
        )

    def _best_x(self) -> Vector:
        state = self.state
        return self._inside(state.belief.mode()) if state.best_x is None else state.best_x.copy()

    def _best_fun(self) -> float:
        return math.nan if self.state.best_x is None else self.state.best_fun

    def _inside(self, x: Vector) -> Vector:
        if self.box is None:
            return x.copy()
        clipped = self.state.lagrangian is not None and self.state.lagrangian.bounds
        return (self.box.clip(x) if clipped else self.box.reflect(x)).copy()

    @staticmethod
    def _candidate(candidates: Matrix | Population, index: int) -> Vector:
        return candidates[index] if isinstance(candidates, Population) else candidates[index].copy()
