"""Checkpoints: a run saved to disk, which continues bit for bit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from cones import storage
from cones.errors import CheckpointError
from cones.files import check_path
from cones.incremental import IncrementalStrategy
from cones.locks import locked
from cones.strategy import CHECKPOINT, Strategy

__all__ = ["is_another", "load", "name_of", "owned", "read", "save"]


def owned(path: str | PathLike[str]) -> AbstractContextManager[None]:
    """Hold a checkpoint for a run. Another run that wants it meanwhile is refused with an InputError."""
    check_path("checkpoint", path)
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise CheckpointError(f"checkpoint: {path} could not be written: there is no folder {target.parent}")
    refusal = f"checkpoint: another run is writing {path}; wait until it ends, or stop it"
    return locked(target.with_name(f".{target.name}.lock"), refusal)


def save(path: str | PathLike[str], strategy: Strategy, run: Mapping[str, Any] | None = None) -> None:
    """Write a checkpoint of a strategy and of the run's settings."""
    storage.write(path, *CHECKPOINT, {"strategy": strategy, "run": dict(run or {})})


def load(path: str | PathLike[str], allow: Iterable[Any] = ()) -> Strategy:
    """The strategy of a checkpoint, ready to `ask`. Single candidates that were out are asked for again.

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
    strategy = read(path, allow)[0]
    if isinstance(strategy, IncrementalStrategy):
        strategy.ask_again()
    return strategy


def read(path: str | PathLike[str], allow: Iterable[Any] = ()) -> tuple[Strategy, dict[str, Any]]:
    """The strategy and the run's settings from a checkpoint."""
    content = storage.read(path, *CHECKPOINT, ("strategy", "run"), allow)
    if not isinstance(content["strategy"], Strategy) or not isinstance(content["run"], dict):
        raise CheckpointError(f"{path}: not a complete cones checkpoint (no strategy)")
    return content["strategy"], content["run"]


def name_of(fun: Callable[..., Any]) -> str:
    """The name of a function as "module:function", for the checkpoint; of other callables, that of their class."""
    while isinstance(fun, partial):
        fun = fun.func
    named = fun if hasattr(fun, "__qualname__") else type(fun)
    return f"{getattr(named, '__module__', '')}:{named.__qualname__}"


def is_another(name: str, before: str) -> bool:
    """True if two names are of different functions.

    A script is "__main__" here and a module there; lambdas and functions in functions have no name of their own.
    """
    if any(local in name or local in before for local in ("<lambda>", "<locals>")):
        return False
    (module, function), (module_before, function_before) = name.split(":", 1), before.split(":", 1)
    return function != function_before or (module != module_before and "__main__" not in (module, module_before))
