"""Checkpoints: a run on disk, from which it goes on bit for bit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

from cones import storage
from cones.strategy import CHECKPOINT, Strategy

__all__ = ["load", "read", "save"]


def save(path: str | PathLike[str], strategy: Strategy, run: Mapping[str, Any] | None = None) -> None:
    """Write a checkpoint of a strategy, with the settings of the run around it."""
    storage.write(path, *CHECKPOINT, {"strategy": strategy, "run": dict(run or {})})


def load(path: str | PathLike[str], allow: Iterable[Any] = ()) -> Strategy:
    """The strategy of a checkpoint, ready to `ask`.

    Args:
        path: the checkpoint.
        allow: components of your own that the checkpoint may name: classes, functions, or "module:Class". No module is
            imported and nothing is executed that is not named here.

    Example:
        >>> import cones, tempfile, pathlib
        >>> es = cones.CoNES([1.0, 2.0], popsize=10, rng=0)
        >>> path = pathlib.Path(tempfile.mkdtemp(), "run.ckpt")
        >>> es.save(path)
        >>> bool((cones.load(path).ask() == es.ask()).all())
        True
    """
    return read(path, allow)[0]


def read(path: str | PathLike[str], allow: Iterable[Any] = ()) -> tuple[Strategy, dict[str, Any]]:
    """The strategy of a checkpoint and the settings of the run around it."""
    content = storage.read(path, *CHECKPOINT, ("strategy", "run"), allow)
    return content["strategy"], content["run"]
