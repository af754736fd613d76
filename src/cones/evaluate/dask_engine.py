"""The engine on a Dask cluster."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from cones.errors import MissingExtraError, StateError
from cones.evaluate.engine import Engine

__all__ = ["DaskEngine", "is_dask_client"]

CONNECT_SECONDS = 10.0


def is_dask_client(value: object) -> bool:
    """Without importing Dask for those who do not use it."""
    return any(kind.__module__ == "distributed.client" and kind.__name__ == "Client" for kind in type(value).__mro__)


class DaskEngine(Engine):
    """Tasks on Dask: a `dask.distributed.Client`, or the address of a scheduler, such as "tcp://host:8786"."""

    def __init__(self, client: Any) -> None:
        if importlib.util.find_spec("distributed") is None:
            raise MissingExtraError("workers: Dask is not installed; run: pip install 'cones[dask]'")
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
        self._executor = client.get_executor(pure=False)

    @property
    def workers(self) -> int:  # type: ignore[override]
        return max(1, int(sum(self._client.nthreads().values())))

    def share(self, value: Any) -> Any:
        # By reference from the scheduler's workers, which pass it on among themselves.
        return self._client.scatter(value, hash=False, broadcast=True)

    def unshare(self, token: Any) -> None:
        token.release()

    def submit(self, call: Callable[..., Any], *arguments: Any, timeout: float | None = None) -> Future[Any]:
        try:
            future: Future[Any] = self._executor.submit(call, *arguments)
            return future
        except RuntimeError as error:
            raise StateError(f"workers: the Dask client takes no work ({error})") from None

    def is_lost(self, error: BaseException) -> bool:
        from distributed.client import FutureCancelledError
        from distributed.scheduler import KilledWorker

        return super().is_lost(error) or isinstance(error, (KilledWorker, FutureCancelledError))

    def close(self) -> None:
        if self._own:
            self._client.close()
