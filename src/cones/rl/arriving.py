"""Asynchronous training: a worker that is free gets a new candidate at once.

A candidate's episodes see the normaliser and the floors as they are when it is handed out; their seeds come from
(seed, purpose, number of the candidate), with common starts from (seed, purpose, number of the draw). Observations
count when all its episodes are done, in the order in which candidates arrive. The journal has this order, so that a
run can be replayed bit for bit without a simulation:

    ["seen", is control, episodes]        before the ["tell", ...] of the candidate
    ["row", iteration, numbers]           an evaluation of the mean policy

The mean policy is evaluated beside the candidates: no worker waits for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cones.arrivals import Identity
from cones.checks import check_integer
from cones.component import Storable
from cones.evaluate import Stream
from cones.rl.early_ends import CONTROL_EVERY, EarlyEnds, Floors
from cones.rl.episode import Episodes
from cones.rl.normaliser import Normaliser
from cones.rl.rollouts import Rollouts
from cones.types import Matrix, Vector

__all__ = ["Arrived", "CandidateStream", "Seen", "listed_episodes"]

ARRIVING = 3  # what the episodes of a seed are for; see `cones.rl.training`

# Is it a control; its episodes as lists, see `listed_episodes`.
Seen = Callable[[bool, dict[str, Any]], None]


@dataclass
class Arrived(Storable):
    """What has arrived so far.

    Args:
        normaliser, early: of all candidates.
        timesteps: in all.
        losses, ended, saved, lengths: since the last iteration: losses of candidates, episodes that were ended, the
            steps that this has saved, as expected, and the steps of all.
        seconds: spent waiting for results since then.
    """

    normaliser: Normaliser
    early: EarlyEnds
    timesteps: int = 0
    losses: list[float] = field(default_factory=list)
    ended: int = 0
    saved: float = 0.0
    lengths: int = 0
    seconds: float = 0.0

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Arrived:
        check_integer("timesteps", parts["timesteps"], 0)
        return cls(**parts)

    def see(self, is_control: bool, episodes: dict[str, Any]) -> None:
        """Count the episodes of a candidate."""
        found = episodes_from(episodes)
        self.normaliser = found.merged_into(self.normaliser)
        if is_control and found.so_far.size:
            self.early = self.early.after(found, np.ones(len(found.returns), np.bool_))
        self.timesteps += found.timesteps
        self.lengths += found.timesteps
        self.ended += int(found.is_cut.sum())
        self.saved += float(episodes["saved"])

    def row(self) -> dict[str, float]:
        """The numbers of the iteration that is under way."""
        good = -np.array([loss for loss in self.losses if not math.isnan(loss)])
        return {
            "timesteps": self.timesteps,
            "population_reward": float(good.mean()) if good.size else math.nan,
            "population_best": float(good.max()) if good.size else math.nan,
            "evaluation_seconds": self.seconds,
            "ended": self.ended,
            "saved": self.saved / (self.lengths + self.saved) if self.lengths else 0.0,
        }

    def next_iteration(self) -> None:
        self.losses, self.ended, self.saved, self.lengths, self.seconds = [], 0, 0.0, 0, 0.0


def listed_episodes(episodes: Episodes, saved: float = 0.0) -> dict[str, Any]:
    """Episodes as numbers and lists."""
    return {
        "returns": episodes.returns.tolist(), "lengths": episodes.lengths.tolist(),
        "moments": episodes.moments.tolist(), "problems": {str(k): why for k, why in episodes.problems.items()},
        "so_far": episodes.so_far.tolist(), "is_cut": episodes.is_cut.tolist(), "saved": saved,
    }  # fmt: skip


def episodes_from(data: dict[str, Any]) -> Episodes:
    """The episodes whose `listed_episodes` these are."""
    return Episodes(
        returns=np.array(data["returns"], np.float64),
        lengths=np.array(data["lengths"], np.int64),
        moments=np.array(data["moments"]),
        problems={int(k): why for k, why in data["problems"].items()},
        so_far=np.array(data["so_far"]).reshape(len(data["returns"]), -1),
        is_cut=np.array(data["is_cut"], np.bool_),
    )


@dataclass(kw_only=True)
class _UnderWay:
    """Episodes under way, and their numbers as they come."""

    rows: dict[int, Vector] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)

    def add(self, k: int, numbers: Vector, reason: str | None) -> None:
        self.rows[k] = numbers
        if reason is not None:
            self.failures[k] = reason

    def numbers(self) -> Matrix:
        return np.array([self.rows[k] for k in range(len(self.rows))])


@dataclass
class _Candidate(_UnderWay):
    floors: Floors


@dataclass
class _Test(_UnderWay):
    count: int
    then: Callable[[Episodes], None]


class CandidateStream(Stream[Identity]):
    """Runs the episodes of candidates; a candidate is done when all its episodes are.

    Args:
        count: episodes per candidate.
        common: True if candidates that are drawn together have the same starts.
        arrived: what has arrived, which the caller keeps.
        see: called with what is seen before a candidate is given back.
    """

    def __init__(self, rollouts: Rollouts, seed: int, count: int, common: bool, arrived: Arrived, see: Seen) -> None:
        super().__init__()
        self._common = common
        self._rollouts, self._seed, self._count, self._arrived, self._see = rollouts, seed, count, arrived, see
        self._episodes = rollouts.stream()
        self._under_way: dict[Identity, _Candidate] = {}
        self._tests: dict[int, _Test] = {}
        self._test = 0  # number of the next

    def free(self) -> int:
        room = -(-self._episodes.free() // self._count)
        return room if self._under_way else max(1, room)  # tests alone would give nothing back

    def evaluate(self, rows: Matrix, then: Callable[[Episodes], None]) -> None:
        """Run episodes beside the candidates; `then` is called with them when all are done."""
        self._tests[self._test] = _Test(len(rows), then)
        for k, row in enumerate(rows):
            self._episodes.put((self._test, k), row)
        self._test += 1

    def put(self, key: Identity, candidate: Vector) -> None:
        of = key[:1] if self._common else key
        words = np.random.SeedSequence((self._seed, ARRIVING, *of)).generate_state(self._count)
        seen, floors, episode = self._arrived.normaliser, self._arrived.early.floors(), self._rollouts.episode
        lowest = None
        if episode.marks and not is_control(key):
            lowest = np.tile(floors.floors, (self._count, 1))
        parameters = np.tile(candidate, (self._count, 1))
        rows = episode.rows(parameters, seen.shift, seen.scale, [int(word) for word in words], lowest)
        self._under_way[key] = _Candidate(floors)
        for k, row in enumerate(rows):
            self._episodes.put((key, k), row)

    def take(self) -> list[tuple[Identity, float]]:
        self.failures = {}
        done: list[tuple[Identity, float]] = []
        while not done:
            for (key, k), numbers in self._episodes.take():
                reason = self._episodes.failures.get((key, k))
                if isinstance(key, int):
                    self._tested(key, k, numbers, reason)
                    continue
                candidate = self._under_way[key]
                candidate.add(k, numbers, reason)
                if len(candidate.rows) == self._count:
                    del self._under_way[key]
                    done.append((key, self._loss(key, candidate)))
        return done

    def _tested(self, number: int, k: int, numbers: Vector, reason: str | None) -> None:
        test = self._tests[number]
        test.add(k, numbers, reason)
        if len(test.rows) == test.count:
            del self._tests[number]
            test.then(self._rollouts.episode.episodes(test.numbers(), test.failures))

    def _loss(self, key: Identity, candidate: _Candidate) -> float:
        episodes = self._rollouts.episode.episodes(candidate.numbers(), candidate.failures)
        returns, saved = candidate.floors.expected(episodes)
        self._see(is_control(key), listed_episodes(episodes, float(saved.sum())))
        if episodes.problems:
            self.failures[key] = next(iter(episodes.problems.values()))
        return -float(returns.mean())

    def close(self) -> None:
        self._episodes.close()


def is_control(key: Identity) -> bool:
    return sum(key) % CONTROL_EVERY == 0
