"""Training as others want to see it: TensorBoard."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cones.errors import MissingExtraError

if TYPE_CHECKING:
    from cones.rl.training import Training

__all__ = ["tensorboard_writer"]

SHOWN = ("population_reward", "population_best", "mean_reward", "spread", "step", "kl")


@contextmanager
def tensorboard_writer(folder: str) -> Iterator[Callable[[Training], None]]:
    """A follower of a training run that writes its curves over timesteps for TensorBoard."""
    if importlib.util.find_spec("tensorboardX") is None:
        raise MissingExtraError("TensorBoard logging needs tensorboardX; run: pip install 'cones[tensorboard]'")
    from tensorboardX import SummaryWriter

    with SummaryWriter(folder) as writer:

        def follow(training: Training) -> None:
            for name, value in training.row().items():
                if name in SHOWN:
                    writer.add_scalar(name, value, training.timesteps)

        yield follow
