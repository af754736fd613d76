"""Training: a strategy whose losses are the negative returns of episodes."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cones.errors import CheckpointError
from cones.evaluate import Candidates, Evaluator, Stream
from cones.incremental import IncrementalStrategy
from cones.progress.stopping import StopReason
from cones.records.folder import Folder, Named
from cones.records.session import Kept, Pause, Session
from cones.rl.arriving import Arrived, CandidateStream, listed_episodes
from cones.rl.early_ends import CONTROL_EVERY, MARKS, EarlyEnds
from cones.rl.episode import Episodes
from cones.rl.normaliser import Normaliser
from cones.rl.policy import Policy
from cones.rl.rollouts import Placement, Rollouts, episode_of, network_of
from cones.rl.source import Source
from cones.rl.spec import TrainingRun
from cones.run.journal import Journal, events_of, replay_events
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

    NOT_RECORDED = ("best", "mean_loss", "loss_deviation", "seconds", "cost")
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
        seen, early, self._events = Normaliser.empty(self.network.sizes[0]), EarlyEnds.empty(), 0
        self._arrived = Arrived(seen, early)
        if extra is not None:
            self._check(strategy, extra)
            seen, early = extra["normaliser"], extra.get("early_ends", early)
            self._arrived, self._events = extra.get("arrived", self._arrived), extra.get("events", 0)
        marks = MARKS if run.task.early_end else ()
        self.rollouts = Rollouts(episode_of(self._source, self.network, self._space, marks), placement)
        super().__init__(strategy, _Returns(self), extra)
        self.asynchronous = run.task.asynchronous
        # By iteration: the next one's counts once the strategy is told.
        self._seen, self._early = {self.iteration: seen}, {self.iteration: early}
        # Of the best descent before the last restart: its belief, the normaliser that its policies have seen with, and
        # the numbers of its last policy, once it was evaluated.
        self._descent, self._earlier = strategy.state.restarts, strategy.state.earlier.belief
        self._earlier_seen: Normaliser = seen if extra is None else extra.get("earlier_normaliser", seen)
        self._earlier_test: dict[str, float] = {} if extra is None else extra.get("earlier_test", {})
        self._journal: Journal | None = None
        self._stream: CandidateStream | None = None
        self._tested = -1  # the last iteration whose mean policy is being evaluated

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

        kinds = {
            "early_ends": EarlyEnds,
            "arrived": Arrived,
            "events": int,
            "earlier_normaliser": Normaliser,
            "earlier_test": dict,
        }
        for name, kind in kinds.items():
            if name in extra and not isinstance(extra[name], kind):
                raise CheckpointError(
                    f"{self.run.name}: the checkpoint has {name} of type {type(extra[name]).__name__}"
                )
        if not all(isinstance(number, float) for number in extra.get("earlier_test", {}).values()):
            raise CheckpointError(f"{self.run.name}: the checkpoint has earlier_test with values that are no numbers")

    @property
    def normaliser(self) -> Normaliser:
        if self.asynchronous:
            return self._arrived.normaliser
        self._follow_restart()
        return self._seen[self.iteration]

    def _follow_restart(self) -> None:
        """A new descent from the start learns its own normaliser; one from the last mean goes on with that policy's."""
        state = self.strategy.state
        if state.restarts == self._descent:
            return
        if state.earlier.belief is not self._earlier:  # the descent that has ended is the best one so far
            self._earlier, self._earlier_seen = state.earlier.belief, self._seen[self.iteration]
            self._earlier_test = {}
        self._descent = state.restarts
        if not state.descent.at_mean:
            self._seen = {self.iteration: Normaliser.empty(self.network.sizes[0])}
        self._early = {self.iteration: EarlyEnds.empty()}

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

        Before the first of them the same candidates run once, except in the paper's setting, to see what observations
        are like: the spread of the weights is meant for normalised ones.
        """
        count = self.run.task.episodes
        rows = np.repeat(np.asarray(candidates), count, axis=0)
        self._before, self._warm_up = self.normaliser, 0
        if not self._before.count and not self.run.paper:
            first = self._episodes(rows, WARM_UP, self._before)
            self._before, self._warm_up = first.merged_into(self._before), first.timesteps
        self._is_control = np.arange(len(rows)) // count % CONTROL_EVERY == 0
        floors = self._early[self.iteration].floors() if self.run.task.early_end else None
        lowest = None if floors is None else np.where(self._is_control[:, None], -math.inf, floors.floors)
        self._last = self._episodes(rows, TRAINING, self._before, lowest)
        returns = self._last.returns
        self._saved: Vector | None = None  # steps, of each episode
        if floors is not None:
            returns, self._saved = floors.expected(self._last)
        means: Vector = returns.reshape(-1, count).mean(axis=1)
        return means

    def stream(self) -> Stream[Any]:
        """The returns of candidates one after the other, for asynchronous training."""
        if not self._arrived.normaliser.count and not self.run.paper:
            candidates = np.asarray(self.strategy.candidates())
            self._see(False, listed_episodes(self._episodes(candidates, WARM_UP, self._arrived.normaliser)))
        count = self.run.task.episodes
        self._stream = CandidateStream(
            self.rollouts, self.run.seed, count, self.run.common_starts, self._arrived, self._see
        )
        return self._stream

    def _see(self, is_control: bool, episodes: dict[str, Any]) -> None:
        if self._journal is not None:
            self._journal("seen", is_control, episodes)
        self._arrived.see(is_control, episodes)
        self.problems = {int(k): why for k, why in episodes["problems"].items()}

    def journal_to(self, path: Path) -> None:
        """Go on after the events of a journal, if there is one, and write further ones to it."""
        if self.asynchronous and isinstance(self.strategy, IncrementalStrategy):
            if self._events or path.exists():
                events = events_of(path)
                if len(events) < self._events:
                    raise CheckpointError(f"{path}: expected at least {self._events} events, got {len(events)}")
                self.replay(events[self._events :], path)
                self._events = len(events)
            self.strategy.journal = self._journal = Journal(path, self._events if path.exists() else None)
            self.strategy.ask_again()

    def replay(self, events: Iterable[list[Any]], path: Path) -> None:
        """Count events of a journal as if they had just happened."""
        strategy = self.strategy
        assert isinstance(strategy, IncrementalStrategy)
        for kind, *content in events:
            if kind == "seen":
                self._arrived.see(*content)
            elif kind == "row":
                iteration, numbers = content
                self._rows[iteration] |= numbers
            else:
                iteration = self.iteration
                if kind == "tell":
                    self.evaluated(np.array(content[1], np.float64), 0.0)
                replay_events([[kind, *content]], strategy, path)
                if self.iteration > iteration:
                    super().told(0.0)
                    self._arrived.next_iteration()

    def evaluated(self, losses: Vector, seconds: float) -> None:
        if self.asynchronous:
            self._arrived.losses += losses.tolist()
            self._arrived.seconds += seconds
            self._rows[self.iteration :] = [self._arrived.row()]
            return
        super().evaluated(losses, seconds)
        good = -losses[~np.isnan(losses)]
        timesteps = self.timesteps + self._warm_up + self._last.timesteps
        self.strategy.history.note({"cost": timesteps})
        self._rows[self.iteration] |= {
            "timesteps": timesteps,
            "population_reward": float(good.mean()) if good.size else math.nan,
            "population_best": float(good.max()) if good.size else math.nan,
        }
        if self._saved is not None:
            steps, saved = self._last.timesteps, float(self._saved.sum())
            ended = int(self._last.is_cut.sum())
            self._rows[self.iteration] |= {"ended": ended, "saved": saved / (steps + saved)}
            early = self._early[self.iteration]
            self._early = {self.iteration: early, self.iteration + 1: early.after(self._last, self._is_control)}
        else:
            self._early[self.iteration + 1] = self._early[self.iteration]
        self._seen = {
            self.iteration: self.normaliser,
            self.iteration + 1: self._last.merged_into(self._before),
        }
        self.problems = self._last.problems

    def begun(self) -> None:
        if self.asynchronous and self._journal is None and isinstance(self.strategy, IncrementalStrategy):
            self.strategy.ask_again()  # what was out when the checkpoint was written
        if self.evaluation_is_due():  # the run was interrupted before it
            self._evaluate()
            self.report(self)

    def told(self, seconds: float) -> None:
        super().told(seconds)
        self._arrived.next_iteration()
        if self.evaluation_is_due():
            self.report(self)
            if self._stream is not None and not self._is_spent():
                self._evaluate_beside(self._stream)
            else:
                self._evaluate()

    def evaluation_is_due(self) -> bool:
        """True if the mean policy is to be evaluated before the next iteration."""
        iteration, task = self.iteration, self.run.task
        if not iteration or "mean_reward" in self._rows[iteration - 1]:
            return False
        return self._is_spent() or (iteration % task.evaluate_every == 0 and iteration > self._tested)

    def _is_spent(self) -> bool:
        return self.timesteps >= self.run.task.timesteps or self.strategy.stop() is not None

    def _evaluate(self) -> None:
        begin = time.perf_counter()
        (mean, seen), row = self._best(), self.iteration - 1
        is_earlier = self.strategy.best_belief() is not self.strategy.state.belief
        if is_earlier and self._earlier_test:  # evaluated again and again, its luckiest evaluation would count
            self._rows[row] |= {**self._earlier_test, "test_seconds": 0.0}
            return
        episodes = self._episodes(self._copies(mean), EVALUATION, seen)
        self._note_test(row, episodes, time.perf_counter() - begin)
        if is_earlier:
            self._earlier_test = {name: self._rows[row][name] for name in ("mean_reward", "mean_reward_deviation")}

    def _evaluate_beside(self, stream: CandidateStream) -> None:
        """Evaluate the mean policy while candidates are evaluated."""
        begin, iteration, seen = time.perf_counter(), self.iteration, self.normaliser
        copies = self._copies(self.strategy.state.belief.mean)
        rows = self.rollouts.episode.rows(copies, seen.shift, seen.scale, self._seeds(EVALUATION, len(copies)))
        self._tested = iteration

        def then(episodes: Episodes) -> None:
            self._note_test(iteration - 1, episodes, time.perf_counter() - begin)
            self.report(self)

        stream.evaluate(rows, then)

    def _copies(self, parameters: Vector) -> Matrix:
        return np.tile(parameters, (self.run.task.evaluation_episodes, 1))

    def _best(self) -> tuple[Vector, Normaliser]:
        """The mean of the best descent so far, and its normaliser."""
        seen, belief = self.normaliser, self.strategy.best_belief()
        return belief.mean, seen if belief is self.strategy.state.belief else self._earlier_seen

    def _note_test(self, row: int, episodes: Episodes, seconds: float) -> None:
        numbers = {
            "mean_reward": float(episodes.returns.mean()),
            "mean_reward_deviation": float(episodes.returns.std()),
            "test_seconds": seconds,
        }
        if self._journal is not None:
            self._journal("row", row, numbers)
        self._rows[row] |= numbers

    def _seeds(self, purpose: int, count: int) -> list[int]:
        task = self.run.task
        common = self.run.common_starts and purpose != EVALUATION
        source = np.random.SeedSequence((self.run.seed, purpose, self.iteration))
        words = source.generate_state(task.episodes if common else count)
        return [int(word) for word in np.resize(words, count)]  # those of a candidate's episodes follow each other

    def _episodes(self, parameters: Matrix, purpose: int, seen: Normaliser, floors: Matrix | None = None) -> Episodes:
        seeds = self._seeds(purpose, len(parameters))
        return self.rollouts.episodes(parameters, seen.shift, seen.scale, seeds, floors)

    def columns(self) -> dict[str, Any]:
        columns = super().columns()
        if self.run.task.early_end:
            rows = self._rows[: self.iteration]
            columns |= {name: [row.get(name, math.nan) for row in rows] for name in ("ended", "saved")}
        return columns

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
        """The mean policy of the best descent, with its normaliser."""
        mean, seen = self._best()
        task, source = self.run.task, self._source
        return Policy(task.task, self.network, mean, seen.shift, seen.scale, self._space, task.env_kwargs, source)

    def state(self) -> dict[str, Any]:
        state = {**super().state(), "task": self.run.task.task, "normaliser": self.normaliser}
        if self._descent:
            state |= {"earlier_normaliser": self._earlier_seen, "earlier_test": self._earlier_test}
        if self.run.task.early_end:
            state["early_ends"] = self._early.get(self.iteration, EarlyEnds.empty())
        if self.asynchronous:
            state |= {"arrived": self._arrived, "events": 0 if self._journal is None else self._journal.count}
        return state

    def write_results(self, folder: Folder, run: Named) -> None:
        self.policy().save(folder.policy_path(run))


class _Returns(Evaluator):
    """The losses of a population: the negative mean returns of its episodes."""

    def __init__(self, training: Training) -> None:
        super().__init__()
        self._training = training

    def losses(self, candidates: Candidates) -> Vector:
        return -self._training.returns(candidates)

    def stream(self) -> Stream[Any]:
        return self._training.stream()

    def close(self) -> None:
        self._training.rollouts.close()

    def abort(self) -> None:
        self._training.rollouts.abort()


@dataclass(frozen=True)
class TrainingPause(Pause):
    """Pauses a training run at a number of timesteps, or when its mean policy reaches the target."""

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
