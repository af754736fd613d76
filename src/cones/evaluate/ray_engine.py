"""The engine on a Ray cluster."""

from __future__ import annotations

import faulthandler
import itertools
import logging
import os
import signal
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from cones.errors import StateError
from cones.evaluate.engine import Blame, Engine
from cones.evaluate.evaluator import Objective
from cones.evaluate.pool import check_can_be_sent
from cones.extras import require_extra

__all__ = ["RayEngine"]

MARKS = 10**5  # calls of a run that can be in progress


class RayEngine(Engine):
    """Tasks on Ray: the cluster that is connected, the one at an address, or one on this machine.

    Args:
        address: as for `ray.init`, such as "auto" or "ray://host:10001"; None starts Ray on this machine if it is not
            running. A cluster that is already connected is used as it is.
    """

    grace = 60.0  # a worker of Ray may take many seconds to start

    def __init__(self, address: str | None = None) -> None:
        require_extra("ray", "ray", "workers: Ray")
        import ray

        self._ray: Any = ray
        self._own = not ray.is_initialized()
        if self._own:
            _connect(ray, address)
        self._call = ray.remote(max_retries=0)(_call)
        self._calls: WeakKeyDictionary[Future[Any], tuple[Any, _Mark]] = WeakKeyDictionary()
        self._run, self._count = uuid.uuid4().hex, itertools.count()

    @property
    def workers(self) -> int:  # type: ignore[override]
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def install(self, objective: Objective) -> Any:
        check_can_be_sent(objective, self._ray.cloudpickle.dumps)
        return self.share(objective)

    def share(self, value: Any) -> Any:
        return self._ray.put(value)

    def submit(self, call: Callable[..., Any], *arguments: Any, timeout: float | None = None) -> Future[Any]:
        mark = _Mark(self._run, next(self._count))
        ref = self._call.remote(mark, timeout, call, *arguments)
        future: Future[Any] = ref.future()
        self._calls[future] = ref, mark
        return future

    def is_lost(self, error: BaseException) -> bool:
        exceptions = self._ray.exceptions
        return isinstance(error, exceptions.RayError) and not isinstance(error, exceptions.RayTaskError)

    def blame(self, future: Future[Any], error: BaseException, alone: bool) -> Blame:
        exceptions = self._ray.exceptions
        if isinstance(error, (exceptions.NodeDiedError, exceptions.ObjectLostError)):
            return Blame.NONE
        node = self._calls[future][1].node()
        dead = {known["NodeID"] for known in self._ray.nodes() if not known["Alive"]}
        return Blame.NONE if node is None or node in dead else Blame.KILLER

    def cause(self, error: BaseException) -> BaseException:
        cause = getattr(error, "cause", None)
        return cause if isinstance(cause, BaseException) else error

    def give_up(self, future: Future[Any]) -> bool:
        self._ray.cancel(self._calls[future][0], force=True)
        return True

    def close(self) -> None:
        if self._own:
            self._ray.shutdown()


@dataclass(frozen=True)
class _Mark:
    """A note in the cluster that a call has begun, and where. It stays when the worker that wrote it dies."""

    run: str
    number: int

    def _key(self) -> str:
        return f"cones:{self.run}:{self.number % MARKS}"

    def set(self) -> None:
        import ray
        from ray.experimental.internal_kv import _internal_kv_put

        place = ray.get_runtime_context().get_node_id()
        _internal_kv_put(self._key(), f"{self.number} {place}", overwrite=True)

    def node(self) -> str | None:
        """The node where the call has begun; None if it has not."""
        from ray.experimental.internal_kv import _internal_kv_get

        number, _, node = (_internal_kv_get(self._key()) or b"").decode().partition(" ")
        return node if number == str(self.number) else None


def _connect(ray: Any, address: str | None) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if address is None:
            with suppress(ConnectionError):
                ray.init(address="auto", **quiet)
                return
            with _on_loopback():
                ray.init(address="local", include_dashboard=False, **quiet)
        else:
            ray.init(address=address, **quiet)
    except Exception as error:
        where, why = address or "this machine", _first_line(error)
        raise StateError(f"workers: no Ray cluster at {where} ({why})") from None


@contextmanager
def _on_loopback() -> Iterator[None]:
    """Make a cluster of this machine listen on 127.0.0.1 alone, as Ray does by default where it has no clusters."""
    import ray._private.ray_constants as constants

    before, constants.ENABLE_RAY_CLUSTER = constants.ENABLE_RAY_CLUSTER, False
    variable = constants.ENABLE_RAY_CLUSTERS_ENV_VAR
    given = os.environ.get(variable)
    os.environ[variable] = "0"  # for the processes of the cluster
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before
        del os.environ[variable]
        if given is not None:
            os.environ[variable] = given


def _call(mark: _Mark, timeout: float | None, call: Callable[..., Any], *arguments: Any) -> Any:
    mark.set()
    if timeout is None:
        return call(*arguments)
    # The timer ends this process with its programs; the traceback ends one that never releases the interpreter.
    timer = threading.Timer(timeout, _end_with_programs)
    timer.daemon = True
    with open(os.devnull, "w") as nowhere:
        faulthandler.dump_traceback_later(timeout + 1.0, exit=True, file=nowhere)
        timer.start()
        try:
            return call(*arguments)
        finally:
            timer.cancel()
            faulthandler.cancel_dump_traceback_later()


def _end_with_programs() -> None:
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():  # Ray starts a worker in a group of its own
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
