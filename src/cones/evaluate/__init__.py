"""Evaluators: how a population's losses are computed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from typing import Any

import numpy as np

from cones.checks import check_integer, check_positive
from cones.errors import InputError
from cones.evaluate.dask_engine import DaskEngine, is_dask_client
from cones.evaluate.dispatch import DispatchEvaluator
from cones.evaluate.engine import Engine, ExecutorEngine
from cones.evaluate.evaluator import Evaluator, Objective
from cones.evaluate.mapped import MapEvaluator
from cones.evaluate.pool import PoolEngine, check_can_be_sent
from cones.evaluate.ray_engine import RayEngine
from cones.evaluate.serial import SerialEvaluator
from cones.kernels.threads import core_count

__all__ = [
    "DaskEngine",
    "DispatchEvaluator",
    "Engine",
    "Evaluator",
    "MapEvaluator",
    "Objective",
    "PoolEngine",
    "RayEngine",
    "SerialEvaluator",
    "Workers",
    "evaluator_from",
]

Workers = int | str | Executor | Engine | Callable[..., Any] | Any  # the last: a Dask client


def evaluator_from(
    objective: Objective, workers: Workers, timeout: float | None = None, retries: int | None = None
) -> Evaluator:
    """An evaluator for what users pass as `workers`, as in SciPy, and more.

    1 evaluates in this thread, an integer k > 1 in k processes, -1 in one process per core; a map-like callable, a
    `concurrent.futures.Executor`, a Dask client or an `Engine` is used as it is; "ray" is the Ray cluster that is
    connected, or one on this machine, "ray://host:port" that at an address, and "tcp://host:port" a Dask scheduler.
    """
    if not callable(objective.fun):
        raise InputError(f"fun: expected a callable, got {type(objective.fun).__name__}")
    timeout = None if timeout is None else check_positive("timeout", timeout)
    retries = None if retries is None else check_integer("retries", retries, 0)
    engine = _engine(objective, workers)
    if engine is not None:
        return DispatchEvaluator(objective, engine, timeout, retries)
    if callable(workers):
        if timeout is not None or retries is not None:
            raise InputError("timeout, retries: expected with processes, an executor or a cluster, got a map")
        return MapEvaluator(objective, workers)
    if not isinstance(workers, (int, np.integer)):
        raise InputError(
            "workers: expected an integer, a map, an Executor, a Dask client or an address, "
            f"got {type(workers).__name__} {workers!r:.60}"
        )
    count = check_integer("workers", workers, -1)
    if count == 0:
        raise InputError("workers: expected a positive integer, -1 for all cores, a map or an Executor, got 0")
    if count == -1:
        count = core_count()
    if count == 1 and timeout is None and retries is None:
        return SerialEvaluator(objective)
    return DispatchEvaluator(objective, PoolEngine(count), timeout, retries)


def _engine(objective: Objective, workers: Workers) -> Engine | None:
    if isinstance(workers, Engine):
        return workers
    if isinstance(workers, Executor):
        if isinstance(workers, ProcessPoolExecutor):
            check_can_be_sent(objective)
        return ExecutorEngine(workers)
    if is_dask_client(workers):
        return DaskEngine(workers)
    if isinstance(workers, str):
        if workers == "ray":
            return RayEngine()
        if workers.startswith("ray://"):
            return RayEngine(workers)
        if workers.startswith(("tcp://", "tls://")):
            return DaskEngine(workers)
        raise InputError(
            "workers: expected 'ray', an address such as 'ray://host:10001' or 'tcp://host:8786' (Dask), "
            f"got {workers!r}"
        )
    return None
