"""The evaluator for what users pass as `workers`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from typing import Any

import numpy as np

from cones.checks import check_integer, check_positive
from cones.component import imported
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

__all__ = ["Workers", "evaluator_from"]

# The last stands for a Dask client.
Workers = int | str | Executor | Engine | Evaluator | type[Evaluator] | Callable[..., Any] | Any
# Map-like methods that give losses in the order in which they come; the second is that of pathos.
REORDER = ("imap_unordered", "uimap")


def evaluator_from(
    objective: Objective,
    workers: Workers,
    timeout: float | None = None,
    retries: int | None = None,
    start_method: str | None = None,
) -> Evaluator:
    """An evaluator for what users pass as `workers`, as in SciPy, and more.

    Args:
        workers: 1 evaluates in this thread, k > 1 in k processes, -1 in one process per core. A map-like callable, a
            `concurrent.futures.Executor`, a Dask client, an `Engine` or an `Evaluator` is used as it is. "ray" is the
            Ray cluster that is connected, or one on this machine; "ray://host:port" is the one at that address,
            "tcp://host:port" a Dask scheduler. A class of evaluators, or its name as "module:Class", is made with the
            objective.
        timeout, retries: see `DispatchEvaluator`.
        start_method: how processes start; see `PoolEngine`.
    """
    if not callable(objective.fun):
        raise InputError(f"fun: expected a callable, got {type(objective.fun).__name__}")
    timeout = None if timeout is None else check_positive("timeout", timeout)
    retries = None if retries is None else check_integer("retries", retries, 0)
    engine = _engine(objective, workers, start_method, serial=timeout is None and retries is None)
    if engine is not None:
        return DispatchEvaluator(objective, engine, timeout, retries)
    if timeout is not None or retries is not None:
        raise InputError(
            "timeout, retries: expected with processes, an executor or a cluster, got a map or an evaluator"
        )
    if isinstance(workers, (int, np.integer)):
        return SerialEvaluator(objective)
    if isinstance(workers, Evaluator):
        return workers
    call: Any = _evaluator_class(workers) if isinstance(workers, str) else workers
    name = getattr(getattr(call, "func", call), "__name__", "")
    if name in REORDER:
        raise InputError(f"workers: expected a map that keeps the order of candidates, got {name}; use pool.map")
    if isinstance(call, type) and issubclass(call, Evaluator):
        return call(objective)
    return MapEvaluator(objective, call)


def _engine(objective: Objective, workers: Workers, start_method: str | None, serial: bool) -> Engine | None:
    """The engine, or None if no tasks are sent; `serial` says that one worker needs no process."""
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
        return DaskEngine(workers) if workers.startswith(("tcp://", "tls://")) else None
    if isinstance(workers, Evaluator) or callable(workers):
        return None
    if not isinstance(workers, (int, np.integer)):
        raise InputError(
            "workers: expected an integer, a map, an Executor, a Dask client, an Evaluator or an address, "
            f"got {type(workers).__name__} {workers!r:.60}"
        )
    count = check_integer("workers", workers, -1)
    if count == 0:
        raise InputError("workers: expected a positive integer, -1 for all cores, a map or an Executor, got 0")
    count = core_count() if count == -1 else count
    return None if count == 1 and serial else PoolEngine(count, start_method)


def _evaluator_class(name: str) -> type[Evaluator]:
    """The class that "module:Class" names; the module is imported because the user has named it."""
    if ":" not in name:
        raise InputError(
            "workers: expected 'ray', an address such as 'ray://host:10001' or 'tcp://host:8786' (Dask), or "
            f"'module:Class' of an Evaluator, got {name!r}"
        )
    found = imported(name, "workers")
    if not (isinstance(found, type) and issubclass(found, Evaluator)):
        raise InputError(f"workers: expected {name!r} to be a class of Evaluator, got {found!r:.60}")
    return found
