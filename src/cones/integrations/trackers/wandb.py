"""Weights & Biases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cones.integrations.extras import missing
from cones.integrations.trackers.tracker import End, Tracker

__all__ = ["WandB"]


class WandB(Tracker):
    """A run of Weights & Biases, online or offline.

    Args:
        run: go on with this run of `wandb.init` instead of beginning one. It is left for you to finish.
        **init: arguments of `wandb.init`: project, name, config, dir, and mode="offline" for a run that stays on this
            machine until `wandb sync`.

    Example:
        >>> import cones
        >>> with WandB(project="spheres", mode="offline", config={"n": 5}) as tracker:  # doctest: +SKIP
        ...     cones.minimize(lambda x: x @ x, [1.0] * 5, rng=0, callback=tracker)
    """

    def __init__(self, run: Any = None, **init: Any) -> None:
        super().__init__()
        try:
            import wandb
        except ImportError as error:
            raise missing("wandb", "wandb", error) from None
        if run is not None and init:
            raise wandb.UsageError(
                f"WandB: expected either a run or arguments of wandb.init, got both ({', '.join(init)})"
            )
        self._mine = run is None
        self.run = wandb.init(**init) if run is None else run

    def _log(self, numbers: Mapping[str, float], step: int) -> None:
        self.run.log(dict(numbers), step=step)

    def _end(self, how: End) -> None:
        if self._mine:
            self.run.finish(exit_code=0 if how == "finished" else 1)
