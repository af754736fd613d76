"""The engine that starts worker processes itself, replaces those that die, and ends those that hang."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np

from cones.beliefs import DiagonalGaussian
from cones.errors import InputError, StateError
from cones.evaluate.engine import Engine
from cones.evaluate.evaluator import Objective
from cones.evaluate.processes import end_workers, worker_pool
from cones.sampling import NoiseStream, Plan, Population
from cones.space.bounds import Box
from cones.types import Matrix

__all__ = ["PoolEngine", "SharedPopulation", "installed", "portable"]

_installed: Objective | None = None


def _install(objective: Objective) -> None:
    """Run once in each worker process: what to evaluate is sent once, not with every task."""
    global _installed
    _installed = objective


def installed() -> Objective:
    if _installed is None:
        raise StateError("workers: a worker process was not set up")
    return _installed


class PoolEngine(Engine):
    """A pool of processes that lives as long as the engine."""

    blames = False  # when one process of a pool dies, all of its tasks fail

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._objective: Objective | None = None
        self._executor: ProcessPoolExecutor | None = None
        self._has_begun = False

    def install(self, objective: Objective) -> None:
        if multiprocessing.get_start_method() == "fork":
            self._has_begun = True  # a forked worker has all that is here
        else:
            check_can_be_sent(objective)
        self._objective = objective

    def share(self, value: Any) -> Any:
        separable = isinstance(value, Population) and isinstance(value.belief, DiagonalGaussian)
        return SharedPopulation.of(value) if separable else value

    def unshare(self, token: Any) -> None:
        if isinstance(token, SharedPopulation):
            token.forget()

    def submit(self, call: Callable[..., Any], *arguments: Any, timeout: float | None = None) -> Future[Any]:
        if self._executor is None:
            self._executor = worker_pool(self.workers, _install, self._objective)
        if not self._has_begun:
            self._begin()
        return self._executor.submit(call, *arguments)

    def _begin(self) -> None:
        """A worker that cannot load the function dies at once, and would seem to be killed by its first candidate."""
        assert self._executor is not None
        try:
            self._executor.submit(int).result()
        except BrokenExecutor:
            raise StateError(
                "workers: a worker process could not begin, perhaps because it cannot load fun (it has said why on "
                "standard error); define fun at the top of a module that can be imported"
            ) from None
        self._has_begun = True

    def recover(self) -> None:
        self.abort()

    def give_up(self, future: Future[Any]) -> bool:
        self.abort()  # the others' work is begun anew
        return True

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)
            self._executor = None

    def abort(self) -> None:
        if self._executor is not None:
            end_workers(self._executor)
            self._executor = None


def check_can_be_sent(objective: Objective, dumps: Callable[[Any], bytes] = pickle.dumps) -> None:
    try:
        dumps(objective)
    except Exception as error:
        raise InputError(
            f"fun: expected a function that can be sent to worker processes, got one that cannot be pickled "
            f"({error}); define it at the top of a module, or pass a ThreadPoolExecutor as workers"
        ) from None


def portable(error: Exception) -> Exception:
    """The exception, or one that says the same, if it would not survive the way to the parent process."""
    if multiprocessing.parent_process() is None:
        return error
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        other = StateError(f"fun raised {type(error).__name__}: {error}")
        for note in getattr(error, "__notes__", []):
            other.add_note(note)
        return other


@dataclass(frozen=True)
class SharedPopulation:
    """A population whose belief lies in shared memory: a few hundred bytes, whatever the dimension."""

    memory: str
    dim: int
    dtype: str
    plan: Plan
    noise: NoiseStream
    iteration: int
    box: Box | None

    @staticmethod
    def of(population: Population) -> SharedPopulation:
        belief = population.belief
        assert isinstance(belief, DiagonalGaussian)
        memory = SharedMemory(create=True, size=2 * belief.mean.nbytes)
        vectors = _vectors(memory, belief.dim, belief.mean.dtype.name)
        vectors[0], vectors[1] = belief.mean, belief.deviation
        _held[memory.name] = memory
        return SharedPopulation(
            memory.name,
            belief.dim,
            belief.mean.dtype.name,
            population.plan,
            population.noise,
            population.iteration,
            population.box,
        )

    def opened(self) -> Population:
        """The population, in a worker."""
        if self.memory not in _held:
            _let_go()
            _held[self.memory] = SharedMemory(self.memory)
        mean, deviation = _vectors(_held[self.memory], self.dim, self.dtype)
        return Population(
            DiagonalGaussian.from_deviation(mean, deviation), self.plan, self.noise, self.iteration, self.box
        )

    def forget(self) -> None:
        memory = _held.pop(self.memory)
        memory.close()
        memory.unlink()


_held: dict[str, SharedMemory] = {}  # in a worker, that of the last iteration


def _let_go() -> None:
    for name in list(_held):
        _held.pop(name).close()


def _vectors(memory: SharedMemory, dim: int, dtype: str) -> Matrix:
    return np.ndarray((2, dim), dtype, memory.buf)
