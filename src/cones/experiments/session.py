"""A run of an experiment: a strategy on a function, or the training of a policy."""

from __future__ import annotations

import numpy as np

from cones.evaluate import Objective, SerialEvaluator
from cones.experiments.spec import AnyRun, Run
from cones.problems import Corrupted
from cones.records.session import Kept, Session
from cones.rl.spec import TrainingRun
from cones.rl.training import Training

__all__ = ["FunctionSession", "session_of"]


def session_of(run: AnyRun, kept: Kept | None = None) -> Session:
    """The session of a run, from its start or from what a checkpoint has kept."""
    return Training(run, kept) if isinstance(run, TrainingRun) else FunctionSession(run, kept)


class FunctionSession(Session):
    """A strategy that minimises a function."""

    NOT_RECORDED = ("loss_deviation", "seconds")
    MEASURED = ("loss_at_mean", "evaluation_seconds", "optimizer_seconds")

    def __init__(self, run: Run, kept: Kept | None = None) -> None:
        problem = run.problem.make()
        self._measured = problem.problem if isinstance(problem, Corrupted) else problem
        strategy, state = kept or (run.method.strategy(np.full(problem.dim, run.mean), run.sigma, run.seed), None)
        super().__init__(strategy, SerialEvaluator(Objective(problem, vectorized=True)), state)

    def told(self, seconds: float) -> None:
        """Record the loss at the mean, which is never corrupted: it says where the run is."""
        super().told(seconds)
        self._rows[self.iteration - 1]["loss_at_mean"] = float(self._measured(self.strategy.state.belief.mean))

    def headline(self) -> str:
        if not self.iteration:
            return "starting"
        return f"mean loss {self.strategy.history.last('mean_loss', 1)[0]:.6g}"
