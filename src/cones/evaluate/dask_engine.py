"""The engine on a Dask cluster."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from typing import Any

from cones.errors import StateError
from cones.evaluate.engine import Blame, Engine
from cones.evaluate.evaluator import Objective
from cones.evaluate.pool import check_can_be_sent
from cones.extras import require_extra

__all__ = ["DaskEngine", "is_dask_client"]

CONNECT_SECONDS = 10.0
WORKER_SECONDS = 120.0  # a worker that was killed may take as long to come back


def is_dask_client(value: object) -> bool:
    """True for a `dask.distributed.Client`; does not import Dask."""
    return any(kind.__module__ == "distributed.client" and kind.__name__ == "Client" for kind in type(value).__mro__)


class DaskEngine(Engine):
    """Tasks on Dask: a `dask.distributed.Client`, or the address of a scheduler, such as "tcp://host:8786"."""

    def __init__(self, client: Any) -> None:
        require_extra("distributed", "dask", "workers: Dask")
        import distributed

        connect: Any = distributed.Client
        self._own = isinstance(client, str)
        if self._own:
            address = client
            try:
                client = connect(address, timeout=CONNECT_SECONDS)
            except (OSError, ValueError) as error:
                raise StateError(f"workers: no Dask scheduler at {address} ({error})") from None
        elif client.status != "running":
            raise StateError(f"workers: the Dask client is {client.status}; pass one that is connected")
        self._client = client
        self._has_had_workers = bool(client.nthreads())

    @property
    def workers(self) -> int:  # type: ignore[override]
        return max(1, int(sum(self._client.nthreads().values())))

    def install(self, objective: Objective) -> Any:
        check_can_be_sent(objective, importlib.import_module("cloudpickle").dumps)  # Dask would log a page
        try:
            return self.share(objective)
        except StateError:
            raise
        except Exception as error:  # of a worker; it comes as text
            raise StateError(
                f"workers: those of the Dask cluster cannot load fun ({error}); install what it needs where they run"
            ) from None

    def share(self, value: Any) -> Any:
        # Tasks take it by reference; the workers pass it on among themselves.
        deadline = time.monotonic() + WORKER_SECONDS
        while True:
            try:
                token = self._client.scatter(value, hash=False, broadcast=True)
                self._has_had_workers = True
                return token
            except (OSError, KeyError) as error:  # no worker, or one was lost in the middle of it
                if time.monotonic() > deadline or not self._may_get_workers():
                    raise StateError(
                        f"workers: the Dask cluster has no worker ({error}); client.wait_for_workers(1) waits for one"
                    ) from None

    def _may_get_workers(self) -> bool:
        """True if workers can come back: the cluster keeps some, or, where that is unknown, it has had some."""
        kept = getattr(self._client.cluster, "workers", None)
        return self._has_had_workers if kept is None else bool(kept)

    def unshare(self, token: Any) -> None:
        token.release()

    def submit(self, call: Callable[..., Any], *arguments: Any, timeout: float | None = None) -> Future[Any]:
        try:
            return _Answer(self._client.submit(call, *arguments, pure=False))
        except RuntimeError as error:
            raise StateError(f"workers: the Dask client takes no work ({error})") from None

    def give_up(self, future: Future[Any]) -> bool:
        return False  # Dask forgets a cancelled call, but its worker continues it

    def is_lost(self, error: BaseException) -> bool:
        from distributed.client import FutureCancelledError
        from distributed.scheduler import KilledWorker

        return super().is_lost(error) or isinstance(error, (KilledWorker, FutureCancelledError))

    def blame(self, future: Future[Any], error: BaseException, alone: bool) -> Blame:
        # Dask says so of all tasks that dead workers had, or that have lost what they needed.
        return Blame.KILLER if alone else Blame.SUSPECT

    def recover(self) -> bool:
        return True

    def close(self) -> None:
        if self._own:
            self._client.close()


class _Answer(Future[Any]):
    """The result of a task on Dask. Dask's own executor never reports a result that was lost."""

    def __init__(self, task: Any) -> None:
        super().__init__()
        self._task = task
        self.set_running_or_notify_cancel()
        task.add_done_callback(self._settle)

    def done(self) -> bool:
        if not super().done() and self._task.status in ("cancelled", "lost"):  # of which Dask tells nobody
            with suppress(InvalidStateError):
                self.set_exception(CancelledError())
        return super().done()

    def _settle(self, task: Any) -> None:
        try:
            result = task.result()
        except BaseException as error:
            with suppress(InvalidStateError):
                self.set_exception(error)
        else:
            with suppress(InvalidStateError):
                self.set_result(result)

    def cancel(self) -> bool:
        with suppress(Exception):  # the cluster may be gone
            self._task.cancel()
        return super().cancel()
