"""TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath

from cones.extras import require_extra
from cones.integrations.trackers.tracker import End, Tracker

__all__ = ["TensorBoard"]


class TensorBoard(Tracker):
    """TensorBoard event files in a folder.

    Args:
        folder: one folder per run; `tensorboard --logdir` of the parent folder compares runs.

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
        require_extra("tensorboardX", "tensorboard", "TensorBoard")
        from tensorboardX import SummaryWriter

        self._writer = SummaryWriter(fspath(folder))

    def _log(self, numbers: Mapping[str, float], step: int) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step)

    def _end(self, how: End) -> None:
        self._writer.close()
