"""Environments of gymnasium, which is imported when it is needed."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from cones.errors import InputError
from cones.extras import require_extra
from cones.rl.spaces import describe_spaces
from cones.rl.tasks import PAPER

__all__ = ["check_task_allowed", "import_gymnasium", "made", "spaces_of"]


def check_task_allowed(task: str, allow: Iterable[Any]) -> None:
    """Refuse a task from a file that would import a module which the user has not named."""
    module, colon, _ = task.partition(":")
    if colon and module not in sys.modules and task not in allow:
        raise InputError(
            f"task: {task!r:.80} imports the module {module!r:.80}; if you trust it, allow it by name: "
            f"allow=[{task!r:.80}] or --allow {task!s:.80}"
        )


def import_gymnasium(mujoco: bool = False) -> Any:
    for package in ("gymnasium", "mujoco", "numba") if mujoco else ("gymnasium",):
        require_extra(package, "rl", "training")
    import gymnasium

    return gymnasium


@contextmanager
def made(task: str, **options: Any) -> Iterator[Any]:
    """Make an environment and close it at the end; `module:Name-v0` imports its module first."""
    gymnasium = import_gymnasium()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # -v4 is "out of date": it is the nearest to the paper's
        try:
            environment = gymnasium.make(task, disable_env_checker=True, **options)
        except Exception as error:  # of the registry, of the module, or of what the environment's own code raises
            kind = "" if isinstance(error, (gymnasium.error.Error, ImportError)) else f"{type(error).__name__}: "
            name = re.sub(r"-v[23]$", "-v4", task)
            nearest = f"; did you mean {name}?" if name != task and name in PAPER else ""
            given = "".join(f" with {name}={value!r}" for name, value in options.items())
            raise InputError(
                f"task: {task!r} is no environment that gymnasium can make{given}: {kind}{error}{nearest}"
            ) from error
    try:
        yield environment
    finally:
        environment.close()


def spaces_of(task: str) -> dict[str, Any]:
    """The spaces of an environment as plain data; an error if policies cannot be trained on it."""
    with made(task) as environment:
        return describe_spaces(environment)
