"""Checkpoints: a run saved to disk, which continues bit for bit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

from cones import storage
from cones.strategy import CHECKPOINT, Strategy

__all__ = ["load", "read", "save"]


def save(path: str | PathLike[str], strategy: Strategy, run: Mapping[str, Any] | None = None) -> None:
    """Write a checkpoint of a strategy and of the run's settings."""
    storage.write(path, *CHECKPOINT, {"strategy": strategy, "run": dict(run or {})})


def load(path: str | PathLike[str], allow: Iterable[Any] = ()) -> Strategy:
    """The strategy of a checkpoint, ready to `ask`.

    Args:
        path: the checkpoint.
        allow: custom components that the checkpoint may contain: classes, functions, or "module:Class". Nothing else is
            imported or executed.

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
    """The strategy and the run's settings from a checkpoint."""
    content = storage.read(path, *CHECKPOINT, ("strategy", "run"), allow)
    return content["strategy"], content["run"]
