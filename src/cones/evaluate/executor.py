"""Evaluation by any `concurrent.futures.Executor`, or by a process pool of our own."""

from __future__ import annotations

import multiprocessing
import pickle
from concurrent.futures import BrokenExecutor, Executor, Future
from itertools import pairwise

import numpy as np

from cones.errors import InputError, StateError
from cones.evaluate.evaluator import Candidates, Evaluator, Objective
from cones.noise import Population
from cones.processes import end_workers, worker_pool
from cones.threads import thread_count
from cones.types import Vector

__all__ = ["ExecutorEvaluator", "ProcessEvaluator"]

# A few tasks per worker: large ones cost less to send, several even out candidates that take longer.
TASKS_PER_WORKER = 4


class _Chunks:
    """A population under way on an executor."""

    def __init__(self, executor: Executor, workers: int, objective: Objective | None, candidates: Candidates) -> None:
        count = len(candidates)
        tasks = min(count, TASKS_PER_WORKER * workers)
        edges = [count * i // tasks for i in range(tasks + 1)]
        self.blocks = list(pairwise(edges))
        self.futures: list[Future[Vector]] = [
            executor.submit(_work, objective, candidates, first, last)
            if isinstance(candidates, Population)
            else executor.submit(_work, objective, candidates[first:last], first)
            for first, last in self.blocks
        ]

    def losses(self, partial: Vector) -> Vector:
        """All losses, written to `partial` as they come."""
        try:
            for (first, last), future in zip(self.blocks, self.futures, strict=True):
                partial[first:last] = future.result()
            return partial.copy()
        except BrokenExecutor as error:
            raise StateError(
                "workers: a worker process died while it evaluated candidates "
                "(killed, out of memory, or a crash in fun)"
            ) from error
        finally:
            for (first, last), future in zip(self.blocks, self.futures, strict=True):
                if future.done() and not future.cancelled() and future.exception() is None:
                    partial[first:last] = future.result()


def _work(objective: Objective | None, rows: Candidates, first: int, last: int = 0) -> Vector:
    chosen = _installed if objective is None else objective
    if chosen is None:
        raise StateError("workers: a worker process was not set up")
    try:
        return chosen.losses(rows.block(first, last) if isinstance(rows, Population) else rows, first)
    except Exception as error:
        raise (error if multiprocessing.parent_process() is None else _portable(error)) from None


def _portable(error: Exception) -> Exception:
    """The exception, or one that says the same, if it would not survive the way to the parent process."""
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        other = StateError(f"fun raised {type(error).__name__}: {error}")
        for note in getattr(error, "__notes__", []):
            other.add_note(note)
        return other


class ExecutorEvaluator(Evaluator):
    """Evaluates on an executor that belongs to the caller and is left running."""

    def __init__(self, objective: Objective, executor: Executor) -> None:
        self._objective = objective
        self._executor = executor
        self._workers = int(getattr(executor, "_max_workers", None) or thread_count())

    def losses(self, candidates: Candidates) -> Vector:
        self.partial = np.full(len(candidates), np.nan)
        chunks = _Chunks(self._executor, self._workers, self._objective, candidates)
        try:
            return chunks.losses(self.partial)
        finally:
            for future in chunks.futures:
                future.cancel()


_installed: Objective | None = None


def _install(objective: Objective) -> None:
    """Run once in each worker process: what to evaluate is sent once, not with every task."""
    global _installed
    _installed = objective


class ProcessEvaluator(Evaluator):
    """Evaluates on a pool of processes that lives as long as the evaluator."""

    def __init__(self, objective: Objective, workers: int) -> None:
        if multiprocessing.get_start_method() != "fork":
            try:
                pickle.dumps(objective)
            except Exception as error:
                raise InputError(
                    f"fun: expected a function that can be sent to worker processes, got one that cannot be pickled "
                    f"({error}); define it at the top of a module, or pass a ThreadPoolExecutor as workers"
                ) from None
        self._workers = workers
        self._executor = worker_pool(workers, _install, objective)

    def losses(self, candidates: Candidates) -> Vector:
        self.partial = np.full(len(candidates), np.nan)
        return _Chunks(self._executor, self._workers, None, candidates).losses(self.partial)

    def close(self) -> None:
        self._executor.shutdown(cancel_futures=True)

    def abort(self) -> None:
        end_workers(self._executor)
