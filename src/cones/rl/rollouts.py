"""Rollouts: episodes of a task, run by an evaluator like any other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from cones.checks import check_integer
from cones.errors import InputError
from cones.evaluate import Evaluator, Objective, PoolEngine, Stream, ThreadEngine, Workers, evaluator_from
from cones.kernels.threads import thread_count
from cones.rl.environments import import_gymnasium, spaces_of
from cones.rl.episode import Episode, Episodes
from cones.rl.gymnasium_episode import GymnasiumEpisode
from cones.rl.mujoco_episode import MujocoEpisode
from cones.rl.physics import PHYSICS
from cones.rl.policy import Network
from cones.rl.source import Source, source_from
from cones.rl.spaces import flat_size
from cones.types import Matrix, Vector

__all__ = ["Placement", "Rollouts", "episode_of", "network_of"]

# Simulators often do not survive a fork.
START_METHOD = "spawn"


@dataclass(frozen=True)
class Placement:
    """Where episodes run. The results do not depend on it.

    Args:
        threads: simulations at a time on this machine, one per core by default. Compiled episodes run in threads,
            others in processes; 1 runs them in this thread.
        workers: runs them elsewhere instead; as for `cones.minimize`.
        timeout, retries: as for `cones.minimize`.
    """

    threads: int | None = None
    workers: Workers | None = None
    timeout: float | None = None
    retries: int | None = None

    def evaluator(self, episode: Episode) -> Evaluator:
        workers = self.workers
        if workers is None:
            threads = thread_count() if self.threads is None else check_integer("threads", self.threads, 1)
            serial = threads == 1 and self.timeout is None and self.retries is None
            engine = ThreadEngine if episode.RELEASES_LOCK else _pool
            workers = 1 if serial else engine(threads)
        elif self.threads is not None:
            raise InputError("threads: expected without workers, got both")
        compiled = episode.RELEASES_LOCK
        objective = Objective(episode, vectorized=compiled, rowwise=compiled, width=episode.width)
        return evaluator_from(objective, workers, self.timeout, self.retries, START_METHOD)


def _pool(workers: int) -> PoolEngine:
    return PoolEngine(workers, START_METHOD)


class Rollouts:
    """Runs episodes of one policy network on one task."""

    def __init__(self, episode: Episode, placement: Placement | None = None) -> None:
        import_gymnasium(mujoco=episode.RELEASES_LOCK)
        self.episode = episode
        self._evaluator = (placement or Placement()).evaluator(episode)

    def episodes(
        self, parameters: Matrix, shift: Vector, scale: Vector, seeds: Sequence[int], floors: Matrix | None = None
    ) -> Episodes:
        """One episode per row of `parameters`, each from the start that gymnasium's `reset(seed=...)` gives."""
        numbers = self._evaluator.losses(self.episode.rows(parameters, shift, scale, seeds, floors))
        return self.episode.episodes(numbers, self._evaluator.failures)

    def stream(self) -> Stream[Any]:
        """Rows of `episode.rows` one after the other; each comes back as the row of its numbers."""
        return self._evaluator.stream()

    def close(self) -> None:
        """Release threads, processes and environments."""
        self._evaluator.close()
        self.episode.close()

    def abort(self) -> None:
        """Release them without waiting for episodes in progress."""
        self._evaluator.abort()
        self.episode.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


def network_of(task: Source | str, hidden: tuple[int, ...], bias: bool) -> tuple[Network, dict[str, object]]:
    """The policy network of a task with these hidden layers, and the task's spaces."""
    space = spaces_of(task)
    return Network((flat_size(space["observation"]), *hidden, flat_size(space["action"])), bias), space


def episode_of(task: Source | str, network: Network, space: dict[str, object], marks: tuple[int, ...] = ()) -> Episode:
    """The fastest episodes for a task: compiled ones for gymnasium's MuJoCo tasks, gymnasium's for any other."""
    source = source_from(task)
    kind = MujocoEpisode if source.is_plain and source.name in PHYSICS else GymnasiumEpisode
    return kind(source, network, space, marks=marks)
