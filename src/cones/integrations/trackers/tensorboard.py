"""TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath

from cones.integrations.extras import missing
from cones.integrations.trackers.tracker import End, Tracker

__all__ = ["TensorBoard"]


class TensorBoard(Tracker):
    """Curves for TensorBoard, as event files in a folder.

    Args:
        folder: one folder per run; `tensorboard --logdir` of a folder above shows several over each other.

    Example:
        >>> import cones, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp(), "sphere")
        >>> with TensorBoard(folder) as tracker:
        ...     result = cones.minimize(lambda x: x @ x, [1.0] * 5, rng=0, maxiter=10, callback=tracker)
        >>> len(list(folder.glob("events.out.tfevents.*")))
        1
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        super().__init__()
        try:
            from tensorboardX import SummaryWriter
        except ImportError as error:
            raise missing("tensorboard", "tensorboardX", error) from None
        self._writer = SummaryWriter(fspath(folder))

    def _log(self, numbers: Mapping[str, float], step: int) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step)

    def _end(self, how: End) -> None:
        self._writer.close()
