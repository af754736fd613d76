"""Weights & Biases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cones.extras import require_extra
from cones.integrations.trackers.tracker import End, Tracker

__all__ = ["WandB"]


class WandB(Tracker):
    """A Weights & Biases run, online or offline.

    Args:
        run: continue this run of `wandb.init`. The tracker does not finish it.
        **init: arguments of `wandb.init`, such as project, name, config, dir; mode="offline" keeps the run local until
            `wandb sync`.

    Example:
        >>> import cones
        >>> with WandB(project="spheres", mode="offline", config={"n": 5}) as tracker:  # doctest: +SKIP
        ...     cones.minimize(lambda x: x @ x, [1.0] * 5, rng=0, callback=tracker)
    """

    def __init__(self, run: Any = None, **init: Any) -> None:
        super().__init__()
        require_extra("wandb", "wandb", "WandB")
        import wandb

        if run is not None and init:
            raise wandb.UsageError(
                f"WandB: expected either a run or arguments of wandb.init, got both ({', '.join(init)})"
            )
        self._owned = run is None
        self.run = wandb.init(**init) if run is None else run

    def _log(self, numbers: Mapping[str, float], step: int) -> None:
        self.run.log(dict(numbers), step=step)

    def _end(self, how: End) -> None:
        if self._owned:
            self.run.finish(exit_code=0 if how == "finished" else 1)
