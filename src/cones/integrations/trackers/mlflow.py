"""MLflow."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from cones.extras import require_extra
from cones.integrations.trackers.tracker import End, Tracker

__all__ = ["MLflow"]


class MLflow(Tracker):
    """An MLflow run. It uses MLflow's client and changes no global state, so that several runs can be active.

    Args:
        experiment: name of the experiment, created if missing; MLflow's "Default" if not given.
        run_name: name of the run.
        tracking_uri: where MLflow stores runs, such as "sqlite:///runs.db" or the address of a server; by default that
            of `mlflow.set_tracking_uri` or MLFLOW_TRACKING_URI.
        run_id: continue this run, such as `mlflow.active_run().info.run_id`. The tracker does not end it.
        params: settings to log, by name.

    Attributes:
        run_id: of the run, for `mlflow.get_run`.

    Example:
        >>> import cones
        >>> with MLflow("spheres", run_name="first", params={"n": 5}) as tracker:  # doctest: +SKIP
        ...     cones.minimize(lambda x: x @ x, [1.0] * 5, rng=0, callback=tracker)
    """

    def __init__(
        self,
        experiment: str | None = None,
        *,
        run_name: str | None = None,
        tracking_uri: str | None = None,
        run_id: str | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        require_extra("mlflow", "mlflow", "MLflow")
        from mlflow import MlflowClient
        from mlflow.entities import Metric, Param

        self._metric = Metric
        self._client = MlflowClient(tracking_uri)
        self._owned = run_id is None
        if run_id is None:
            run_id = self._client.create_run(self._experiment_id(experiment), run_name=run_name).info.run_id
        self.run_id: str = run_id
        if params:
            self._client.log_batch(run_id, params=[Param(name, str(value)) for name, value in params.items()])

    def _experiment_id(self, name: str | None) -> str:
        if name is None:
            return "0"
        found = self._client.get_experiment_by_name(name)
        return str(self._client.create_experiment(name) if found is None else found.experiment_id)

    def _log(self, numbers: Mapping[str, float], step: int) -> None:
        now = int(time.time() * 1000.0)
        self._client.log_batch(self.run_id, [self._metric(name, value, now, step) for name, value in numbers.items()])

    def _end(self, how: End) -> None:
        if self._owned:
            status = {"finished": "FINISHED", "failed": "FAILED", "interrupted": "KILLED"}[how]
            self._client.set_terminated(self.run_id, status)
