"""Training: a strategy whose losses are the negative returns of episodes."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from cones.errors import CheckpointError
from cones.evaluate import Candidates, Evaluator
from cones.progress.stopping import StopReason
from cones.records.folder import Folder, Named
from cones.records.session import Kept, Pause, Session
from cones.rl.episode import Episodes
from cones.rl.normaliser import Normaliser
from cones.rl.policy import Policy
from cones.rl.rollouts import Placement, Rollouts, episode_of, network_of
from cones.rl.source import Source
from cones.rl.spec import TrainingRun
from cones.rl.tasks import PAPER
from cones.strategy import Strategy
from cones.types import Matrix, Vector

__all__ = ["TIMESTEPS", "Training", "TrainingPause"]

TIMESTEPS = StopReason("timesteps", "The budget of timesteps is spent.", 1)

# What the episodes of a seed are for.
TRAINING, EVALUATION, WARM_UP = 0, 1, 2


class Training(Session):
    """One training run. After some of its iterations the mean policy is evaluated.

    Every episode's seed comes from (seed, purpose, iteration), so that a run does not depend on where its episodes run
    and goes on from a checkpoint bit for bit.
    """

    NOT_RECORDED = ("best", "mean_loss", "loss_deviation", "seconds")
    MEASURED = (
        "timesteps",  # of training, so far
        "population_reward",  # mean return of the candidates
        "population_best",
        "mean_reward",  # of the mean policy after the iteration; NaN where it was not evaluated
        "mean_reward_deviation",
        "evaluation_seconds",  # of training episodes
        "optimizer_seconds",
        "test_seconds",  # of evaluation episodes
    )
    KEEPS_CHECKPOINT = True  # to train on

    def __init__(
        self,
        run: TrainingRun,
        kept: Kept | None = None,
        placement: Placement | None = None,
        source: Source | None = None,
    ) -> None:
        self.run = run
        self._source = source or run.task.source
        self.network, self._space = network_of(self._source, run.task.hidden, run.task.bias)
        self.problems: dict[int, str] = {}  # of the last iteration's episodes
        strategy, extra = kept or (run.strategy(self.network), None)
        seen = Normaliser.empty(self.network.sizes[0])
        if extra is not None:
            self._check(strategy, extra)
            seen = extra["normaliser"]
        self.rollouts = Rollouts(episode_of(self._source, self.network, self._space), placement)
        super().__init__(strategy, _Returns(self), extra)
        self._seen = {self.iteration: seen}  # by iteration: the next one's counts once the strategy is told

    def _check(self, strategy: Strategy, extra: dict[str, Any]) -> None:
        kept = extra.get("task")
        if kept != self.run.task.task:
            raise CheckpointError(f"{self.run.name}: the checkpoint is of {kept}, not of {self.run.task.task}")
        seen = extra.get("normaliser")
        if not isinstance(seen, Normaliser) or seen.mean.size != self.network.sizes[0]:
            raise CheckpointError(
                f"{self.run.name}: the checkpoint has no normaliser of {self.network.sizes[0]} numbers"
            )
        if strategy.state.belief.dim != self.network.dim:
            raise CheckpointError(
                f"{self.run.name}: the checkpoint has {strategy.state.belief.dim} parameters, "
                f"and the policy {self.network.dim}"
            )

    @property
    def normaliser(self) -> Normaliser:
        return self._seen[self.iteration]

    @property
    def timesteps(self) -> int:
        return int(self._rows[self.iteration - 1]["timesteps"]) if self.iteration else 0

    def reason(self) -> StopReason | None:
        if self.evaluation_is_due():
            return None
        if self.timesteps >= self.run.task.timesteps:
            return TIMESTEPS
        return self.strategy.stop()

    def share(self) -> float:
        return min(1.0, self.timesteps / self.run.task.timesteps)

    def returns(self, candidates: Candidates) -> Vector:
        """The mean return of each candidate's episodes.

        Before the first of them, tasks that are not the paper's run the same candidates once to see what observations
        are like: the spread of the weights is meant for normalised ones.
        """
        count = self.run.task.episodes
        rows = np.repeat(np.asarray(candidates), count, axis=0)
        self._before, self._warm_up = self.normaliser, 0
        if not self._before.count and self.run.task.task not in PAPER:
            first = self._episodes(rows, WARM_UP, self._before)
            self._before, self._warm_up = first.merged_into(self._before), first.timesteps
        self._last = self._episodes(rows, TRAINING, self._before)
        returns: Vector = self._last.returns.reshape(-1, count).mean(axis=1)
        return returns

    def evaluated(self, losses: Vector, seconds: float) -> None:
        super().evaluated(losses, seconds)
        good = -losses[~np.isnan(losses)]
        self._rows[self.iteration] |= {
            "timesteps": self.timesteps + self._warm_up + self._last.timesteps,
            "population_reward": float(good.mean()) if good.size else math.nan,
            "population_best": float(good.max()) if good.size else math.nan,
        }
        self._seen = {
            self.iteration: self.normaliser,
            self.iteration + 1: self._last.merged_into(self._before),
        }
        self.problems = self._last.problems

    def begun(self) -> None:
        if self.evaluation_is_due():  # the run was interrupted before it
            self._evaluate()
            self.report(self)

    def told(self, seconds: float) -> None:
        super().told(seconds)
        if self.evaluation_is_due():
            self.report(self)
            self._evaluate()

    def evaluation_is_due(self) -> bool:
        """True if the mean policy is to be evaluated before the next iteration."""
        iteration, task = self.iteration, self.run.task
        if not iteration or "mean_reward" in self._rows[iteration - 1]:
            return False
        last = self.timesteps >= task.timesteps or self.strategy.stop() is not None
        return last or iteration % task.evaluate_every == 0

    def _evaluate(self) -> None:
        begin = time.perf_counter()
        mean = self.strategy.state.belief.mean
        rows = np.tile(mean, (self.run.task.evaluation_episodes, 1))
        episodes = self._episodes(rows, EVALUATION, self.normaliser)
        self._rows[self.iteration - 1] |= {
            "mean_reward": float(episodes.returns.mean()),
            "mean_reward_deviation": float(episodes.returns.std()),
            "test_seconds": time.perf_counter() - begin,
        }

    def _episodes(self, parameters: Matrix, purpose: int, seen: Normaliser) -> Episodes:
        count, task = len(parameters), self.run.task
        common = task.common_starts and purpose != EVALUATION
        source = np.random.SeedSequence((self.run.seed, purpose, self.iteration))
        words = source.generate_state(task.episodes if common else count)
        words = np.resize(words, count)  # repeats them: those of a candidate's episodes follow each other
        return self.rollouts.episodes(parameters, seen.shift, seen.scale, [int(word) for word in words])

    def headline(self) -> str:
        found = self.last("mean_reward")
        if math.isnan(found):
            found = self.last("population_reward")
            return "starting" if math.isnan(found) else f"reward of the population {found:.5g}"
        return f"reward {found:.5g}"

    def row(self) -> dict[str, float]:
        """All numbers of the last iteration by name."""
        if not self.iteration:
            return {}
        columns = self.strategy.intermediate_result().items()
        left_out = ("fun", *self.NOT_RECORDED)
        known = {name: value for name, value in columns if isinstance(value, float) and name not in left_out}
        return {**known, **self._rows[self.iteration - 1]}

    def last(self, column: str) -> float:
        """The last number of a column that was measured, or NaN."""
        rows = self._rows[: self.iteration]
        return next((row[column] for row in reversed(rows) if column in row), math.nan)

    def policy(self) -> Policy:
        """The mean policy, with the normaliser as it is now."""
        seen, mean = self.normaliser, self.strategy.state.belief.mean
        task, source = self.run.task, self._source
        return Policy(task.task, self.network, mean, seen.shift, seen.scale, self._space, task.env_kwargs, source)

    def state(self) -> dict[str, Any]:
        return {**super().state(), "task": self.run.task.task, "normaliser": self.normaliser}

    def write_results(self, folder: Folder, run: Named) -> None:
        self.policy().save(folder.policy_path(run))


class _Returns(Evaluator):
    """The losses of a population: the negative mean returns of its episodes."""

    def __init__(self, training: Training) -> None:
        super().__init__()
        self._training = training

    def losses(self, candidates: Candidates) -> Vector:
        return -self._training.returns(candidates)

    def close(self) -> None:
        self._training.rollouts.close()

    def abort(self) -> None:
        self._training.rollouts.abort()


@dataclass(frozen=True)
class TrainingPause(Pause):
    """Leaves a training run for now at a number of timesteps, or when its mean policy reaches the target."""

    timesteps: float = math.inf
    at_target: bool = False

    def __call__(self, session: Session) -> bool:
        if not isinstance(session, Training) or session.evaluation_is_due():
            return False
        target = session.run.task.target
        reached = self.at_target and target is not None and session.last("mean_reward") >= target
        return reached or session.timesteps >= self.timesteps

    def share(self, session: Session) -> float:
        if not isinstance(session, Training):
            return session.share()
        return min(1.0, session.timesteps / min(self.timesteps, session.run.task.timesteps))
