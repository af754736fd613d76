"""The engine on a Ray cluster."""

from __future__ import annotations

import faulthandler
import logging
import os
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from cones.errors import StateError
from cones.evaluate.engine import Engine
from cones.evaluate.evaluator import Objective
from cones.evaluate.pool import check_can_be_sent
from cones.extras import require_extra

__all__ = ["RayEngine"]


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
            try:
                ray.init(address=address, log_to_driver=False, include_dashboard=False, logging_level=logging.ERROR)
            except Exception as error:
                where, why = address or "this machine", _first_line(error)
                raise StateError(f"workers: no Ray cluster at {where} ({why})") from None
        self._call = ray.remote(max_retries=0)(_call)
        self._refs: dict[Future[Any], Any] = {}

    @property
    def workers(self) -> int:  # type: ignore[override]
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def install(self, objective: Objective) -> Any:
        check_can_be_sent(objective, self._ray.cloudpickle.dumps)
        return self.share(objective)

    def share(self, value: Any) -> Any:
        return self._ray.put(value)

    def submit(self, call: Callable[..., Any], *arguments: Any, timeout: float | None = None) -> Future[Any]:
        ref = self._call.remote(timeout, call, *arguments)
        future: Future[Any] = ref.future()
        self._refs[future] = ref
        future.add_done_callback(lambda done: self._refs.pop(done, None))
        return future

    def is_lost(self, error: BaseException) -> bool:
        exceptions = self._ray.exceptions
        return isinstance(error, exceptions.RayError) and not isinstance(error, exceptions.RayTaskError)

    def cause(self, error: BaseException) -> BaseException:
        cause = getattr(error, "cause", None)
        return cause if isinstance(cause, BaseException) else error

    def give_up(self, future: Future[Any]) -> bool:
        ref = self._refs.pop(future, None)
        if ref is not None:
            self._ray.cancel(ref, force=True)
        return True

    def close(self) -> None:
        if self._own:
            self._ray.shutdown()


def _call(timeout: float | None, call: Callable[..., Any], *arguments: Any) -> Any:
    if timeout is None:
        return call(*arguments)
    # Ends this process if the call hangs, even if it never releases the interpreter.
    with open(os.devnull, "w") as nowhere:
        faulthandler.dump_traceback_later(timeout, exit=True, file=nowhere)
        try:
            return call(*arguments)
        finally:
            faulthandler.cancel_dump_traceback_later()


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
