"""Training: a strategy whose losses are the negative returns of episodes."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from cones.errors import CheckpointError
from cones.experiments.records import Folder, Named
from cones.experiments.session import Pause, Session
from cones.progress.history import RADII
from cones.progress.stopping import StopReason
from cones.rl.normaliser import Normaliser
from cones.rl.policy import Network, Policy
from cones.rl.rollouts import Episodes, Rollouts
from cones.rl.run import TrainingRun
from cones.rl.spaces import flat_size
from cones.rl.tasks import PHYSICS
from cones.strategy import Strategy
from cones.types import Matrix, Vector

__all__ = ["TIMESTEPS", "Training", "TrainingPause", "rollouts_of"]

TIMESTEPS = StopReason("timesteps", "The budget of timesteps is spent.", 1)

# Which episodes a seed is for: those of training, or those of evaluations during it.
TRAINING, EVALUATION = 0, 1


def rollouts_of(task: str, threads: int | None = None) -> Rollouts:
    """The fastest engine for a task: compiled episodes for the paper's four, processes for any other."""
    if task in PHYSICS:
        from cones.rl.mujoco_rollouts import MujocoRollouts

        return MujocoRollouts(task, threads)
    from cones.rl.gymnasium_rollouts import GymnasiumRollouts

    return GymnasiumRollouts(task, threads)


class Training(Session):
    """One training run. An iteration is either one of the strategy or an evaluation of the mean policy.

    Every episode's seed comes from (seed, purpose, iteration), so that a run does not depend on the number of
    threads and, taken up from a checkpoint, goes on bit for bit.
    """

    HISTORY = ("evaluations", "step", "spread", "kl", "multiplier", "gap", "failures", *RADII)
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

    def __init__(self, run: TrainingRun, kept: tuple[Strategy, dict[str, Any]] | None = None) -> None:
        self.run = run
        self.rollouts = rollouts_of(run.task.task, run.threads)
        space = self.rollouts.space
        sizes = (flat_size(space["observation"]), *run.task.hidden, flat_size(space["action"]))
        self.network = Network(sizes, run.task.bias)
        self.problems: dict[int, str] = {}  # of the last iteration's episodes
        if kept is None:
            super().__init__(self._start())
            self._seen = {0: Normaliser.empty(self.network.sizes[0])}
        else:
            strategy, extra = kept
            self._check(strategy, extra)
            super().__init__(strategy, extra)
            seen = extra["normaliser"]
            self._seen = {
                strategy.state.iteration: Normaliser(seen["count"], np.array(seen["mean"]), np.array(seen["scatter"]))
            }

    def _start(self) -> Strategy:
        run = self.run
        return run.method.strategy(np.zeros(self.network.dim), run.task.sigma, run.seed, run.settings, maxiter=math.inf)

    def _check(self, strategy: Strategy, extra: dict[str, Any]) -> None:
        kept = extra.get("task")
        if kept != self.run.task.task:
            raise CheckpointError(f"{self.run.name}: the checkpoint is of {kept}, not of {self.run.task.task}")
        if strategy.state.belief.dim != self.network.dim:
            raise CheckpointError(
                f"{self.run.name}: the checkpoint has {strategy.state.belief.dim} parameters, "
                f"and the policy {self.network.dim}"
            )

    @property
    def iteration(self) -> int:
        return self.strategy.state.iteration

    @property
    def normaliser(self) -> Normaliser:
        return self._seen[self.iteration]

    @property
    def timesteps(self) -> int:
        return int(self._rows[self.iteration - 1]["timesteps"]) if self.iteration else 0

    def stop(self) -> StopReason | None:
        if self.evaluation_is_due():
            return None
        if self.timesteps >= self.run.task.timesteps:
            return TIMESTEPS
        return self.strategy.stop()

    def share(self) -> float:
        return min(1.0, self.timesteps / self.run.task.timesteps)

    def iterate(self) -> None:
        if self.evaluation_is_due():
            self._evaluate()
        else:
            self._train()

    def _train(self) -> None:
        strategy, task, iteration = self.strategy, self.run.task, self.iteration
        begin = time.perf_counter()
        X = strategy.ask()
        asked = time.perf_counter()
        episodes = self._episodes(np.repeat(np.asarray(X), task.episodes, axis=0), TRAINING)
        rolled = time.perf_counter()
        returns = episodes.returns.reshape(len(X), task.episodes).mean(axis=1)
        good = returns[~np.isnan(returns)]
        row = self._begin_row(
            timesteps=self.timesteps + episodes.timesteps,
            population_reward=float(good.mean()) if good.size else math.nan,
            population_best=float(good.max()) if good.size else math.nan,
            evaluation_seconds=rolled - asked,
        )
        # Like the row: without the strategy's next iteration it does not count.
        self._seen = {iteration: self.normaliser, iteration + 1: episodes.merged_into(self.normaliser)}
        self.problems = episodes.problems
        strategy.tell(X, -returns)
        row["optimizer_seconds"] = asked - begin + time.perf_counter() - rolled

    def evaluation_is_due(self) -> bool:
        """Whether the next iteration is an evaluation of the mean policy."""
        iteration, task = self.iteration, self.run.task
        if not iteration or "mean_reward" in self._rows[iteration - 1]:
            return False
        last = self.timesteps >= task.timesteps or self.strategy.stop() is not None
        return last or iteration % task.evaluate_every == 0

    def _evaluate(self) -> None:
        begin = time.perf_counter()
        mean = self.strategy.state.belief.mean
        episodes = self._episodes(np.tile(mean, (self.run.task.evaluation_episodes, 1)), EVALUATION)
        self._rows[self.iteration - 1] |= {
            "mean_reward": float(episodes.returns.mean()),
            "mean_reward_deviation": float(episodes.returns.std()),
            "test_seconds": time.perf_counter() - begin,
        }

    def _episodes(self, parameters: Matrix, purpose: int) -> Episodes:
        words = np.random.SeedSequence((self.run.seed, purpose, self.iteration)).generate_state(len(parameters))
        seen = self.normaliser
        return self.rollouts.episodes(self.network, parameters, seen.shift, seen.scale, [int(word) for word in words])

    def headline(self) -> str:
        found = self.last("mean_reward")
        if math.isnan(found):
            found = self.last("population_reward")
            return "starting" if math.isnan(found) else f"reward of the population {found:.5g}"
        return f"reward {found:.5g}"

    def row(self) -> dict[str, float]:
        """What is known of the last iteration."""
        names = self.HISTORY if self.iteration else ()
        known = {name: float(self.strategy.history.last(name, 1)[0]) for name in names}
        return {**known, **(self._rows[self.iteration - 1] if self.iteration else {})}

    def last(self, column: str) -> float:
        """The last number of a column that was measured, or NaN."""
        rows = self._rows[: self.iteration]
        return next((row[column] for row in reversed(rows) if column in row), math.nan)

    def policy(self, parameters: Vector | None = None) -> Policy:
        """The mean policy, or that of other parameters, with the normaliser as it is now."""
        seen = self.normaliser
        flat = self.strategy.state.belief.mean if parameters is None else parameters
        return Policy(self.run.task.task, self.network, flat, seen.shift, seen.scale, self.rollouts.space)

    def state(self) -> dict[str, Any]:
        seen = self.normaliser
        normaliser = {"count": seen.count, "mean": seen.mean.tolist(), "scatter": seen.scatter.tolist()}
        return {**super().state(), "task": self.run.task.task, "normaliser": normaliser}

    def write_results(self, folder: Folder, run: Named) -> None:
        self.policy().save(folder.runs / f"{run.name}.policy.npz")

    def close(self) -> None:
        self.rollouts.close()


@dataclass(frozen=True)
class TrainingPause(Pause):
    """When to leave a training run for now: at a number of timesteps, or when its mean policy is at the target."""

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
