"""The engine for any gymnasium environment: processes that keep an environment each and run whole episodes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import ExitStack
from typing import Any

import numpy as np

from cones.checks import check_integer
from cones.errors import InputError, StateError
from cones.evaluate.processes import end_workers, worker_pool
from cones.kernels.threads import thread_count
from cones.rl.environments import import_gymnasium, made
from cones.rl.policy import Network, Policy
from cones.rl.rollouts import Episodes, Rollouts, collected
from cones.rl.spaces import describe_spaces, flat
from cones.types import Matrix, Vector

__all__ = ["GymnasiumRollouts", "played"]

TASKS_PER_WORKER = 4


class GymnasiumRollouts(Rollouts):
    """Episodes of any environment that gymnasium can make by its id, with Box or Discrete spaces.

    Args:
        task: its id; `module:Name-v0` imports the module that registers it first.
        workers: processes, one per core by default; 1 runs in this process.
        horizon: the most steps of an episode, for environments that have no limit of their own.
    """

    def __init__(self, task: str, workers: int | None = None, horizon: int = 10_000) -> None:
        import_gymnasium()
        self.task = task
        with made(task) as environment:
            self.space = describe_spaces(environment)
        self._workers = thread_count() if workers is None else check_integer("threads", workers, 1)
        self._horizon = horizon
        self._pool: ProcessPoolExecutor | None = None
        self._here: _Worker | None = None

    def episodes(
        self, network: Network, parameters: Matrix, shift: Vector, scale: Vector, seeds: Sequence[int]
    ) -> Episodes:
        if len(parameters) != len(seeds):
            raise InputError(f"seeds: expected {len(parameters)}, one per row of parameters, got {len(seeds)}")
        items = [(network, row, shift, scale, int(seed)) for row, seed in zip(parameters, seeds, strict=True)]
        if self._workers == 1:
            self._here = self._here or _Worker(self.task, self.space, self._horizon)
            return collected([self._here.episode(*item) for item in items])
        if self._pool is None:
            # Fresh processes: simulators often do not survive a fork.
            context = multiprocessing.get_context("spawn")
            self._pool = worker_pool(self._workers, _install, self.task, self.space, self._horizon, context=context)
            self._check_start()
        size = -(-len(items) // (TASKS_PER_WORKER * self._workers))
        try:
            return collected(list(self._pool.map(_work, items, chunksize=size)))
        except BrokenExecutor as error:
            self._pool = None
            raise StateError(
                f"a process that runs {self.task} died (killed, out of memory, or a crash in the environment)"
            ) from error
        except BaseException:
            self.close(wait=False)
            raise

    def _check_start(self) -> None:
        assert self._pool is not None
        try:
            self._pool.submit(int).result()
        except BrokenExecutor as error:
            self._pool = None
            raise StateError(
                f"the processes that should run {self.task} did not start; a script that trains must keep its own "
                'code under `if __name__ == "__main__":`, or train with threads=1'
            ) from error

    def close(self, wait: bool = True) -> None:
        if self._pool is not None:
            if wait:
                self._pool.shutdown(cancel_futures=True)
            else:
                end_workers(self._pool)
            self._pool = None
        if self._here is not None:
            self._here.close()
            self._here = None


class _Worker:
    """An environment, and episodes in it."""

    def __init__(self, task: str, space: dict[str, Any], horizon: int) -> None:
        self._task, self._space, self._horizon = task, space, horizon
        self._stack = ExitStack()
        self._environment = self._stack.enter_context(made(task))

    def episode(
        self, network: Network, parameters: Vector, shift: Vector, scale: Vector, seed: int
    ) -> tuple[float, int, Matrix, str]:
        observations: list[Vector] = []
        total, problem = 0.0, ""
        try:
            policy = Policy(self._task, network, parameters, shift, scale, self._space)
            for observation, reward in played(self._environment, policy, seed, self._horizon):
                observations.append(flat(observation, self._space["observation"]))
                total += reward
        except InputError as error:  # of the policy
            problem = f"in step {len(observations) + 1}: {error}"
        except Exception as error:
            error.add_note(f"cones: raised by {self._task} in step {len(observations) + 1} of an episode")
            raise
        if not np.isfinite(total):
            problem = f"the episode's return is {total}"
        seen = np.array(observations).reshape(-1, network.sizes[0])
        if not len(seen):
            return total, 0, np.zeros((2, network.sizes[0])), problem or "the episode has no step"
        mean = seen.mean(axis=0)
        return total, len(seen), np.array([mean, np.square(seen - mean).sum(axis=0)]), problem

    def close(self) -> None:
        self._stack.close()


def played(environment: Any, policy: Policy, seed: int | None, horizon: int) -> Any:
    """An episode of a policy, step by step: the observation it saw and the reward it got for its action."""
    observation, _ = environment.reset(seed=seed)
    for _ in range(horizon):
        following, reward, terminated, truncated, _ = environment.step(policy(observation))
        yield observation, float(reward)
        observation = following
        if terminated or truncated:
            return


_installed: _Worker | None = None


def _install(task: str, space: dict[str, Any], horizon: int) -> None:
    global _installed
    _installed = _Worker(task, space, horizon)


def _work(item: tuple[Any, ...]) -> tuple[float, int, Matrix, str]:
    if _installed is None:
        raise StateError("a worker process was not set up")
    return _installed.episode(*item)
