"""Environments of gymnasium, which is imported when it is needed."""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from cones.component import identifier, imported
from cones.errors import InputError
from cones.extras import require_extra
from cones.rl.source import ID, Source, source_from
from cones.rl.spaces import describe_spaces
from cones.rl.tasks import PAPER

__all__ = ["check_task_allowed", "import_gymnasium", "made", "spaces_of"]


def check_task_allowed(task: str, allow: Iterable[Any]) -> None:
    """Refuse a task from a file that would import a module, or call a function, which the user has not named."""
    module, colon, _ = task.partition(":")
    known = {thing if isinstance(thing, str) else identifier(thing) for thing in allow}
    if colon and task not in known and (module not in sys.modules or not ID.search(task)):
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
def made(task: Source | str, **options: Any) -> Iterator[Any]:
    """Make an environment and close it at the end."""
    source = source_from(task)
    gymnasium = import_gymnasium()  # it sets filters of its own
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # -v4 is "out of date": it is the nearest to the paper's
        environment = _new(gymnasium, source, {**source.kwargs, **options})
    try:
        yield environment
    finally:
        environment.close()


def _new(gymnasium: Any, source: Source, options: dict[str, Any]) -> Any:
    name = source.name
    try:
        maker = source.maker or _named(name, gymnasium)
        if maker is None:
            return gymnasium.make(name, disable_env_checker=True, **options)
        environment = maker(**_taken(maker, options))
    except InputError:
        raise
    except Exception as error:  # of the registry, of the module, or of what the environment's own code raises
        kind = "" if isinstance(error, (gymnasium.error.Error, ImportError)) else f"{type(error).__name__}: "
        likely = re.sub(r"-v[23]$", "-v4", name)
        nearest = f"; did you mean {likely}?" if likely != name and likely in PAPER else ""
        given = "".join(f" with {option}={value!r:.80}" for option, value in options.items())
        raise InputError(
            f"task: {name!r} is no environment that gymnasium can make{given}: {kind}{error}{nearest}"
        ) from error
    parts = ("reset", "step", "observation_space", "action_space")
    if missing := [part for part in parts if getattr(environment, part, None) is None]:
        raise InputError(
            f"task: expected {name} to make an environment of gymnasium, got {environment!r:.80} without "
            f"{' and '.join(missing)}"
        )
    return environment


def _taken(maker: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The options without a render mode, if the maker is known to take none."""
    try:
        inspect.signature(maker).bind(**options)
    except TypeError:
        return {name: value for name, value in options.items() if name != "render_mode"}
    except ValueError:  # of those without a signature
        pass
    return options


def _named(name: str, gymnasium: Any) -> Any:
    """The class or function of "module:name"; None if it is an id that gymnasium makes."""
    module, colon, attribute = name.partition(":")
    if not colon or ID.search(attribute):
        return None
    __import__(module)
    return None if attribute in gymnasium.registry else imported(name, "task")


def spaces_of(task: Source | str) -> dict[str, Any]:
    """The spaces of an environment as plain data; an error if policies cannot be trained on it."""
    with made(task) as environment:
        _warn_of_memory(environment)
        return describe_spaces(environment)


def _warn_of_memory(environment: Any) -> None:
    """Warn of wrappers whose statistics are each worker's own, and not the policy's."""
    while environment is not None:
        name = type(environment).__name__
        if name in ("NormalizeObservation", "NormalizeReward"):
            warnings.warn(
                f"task: the wrapper {name} learns from the episodes of one worker, so that the run depends on where "
                "they run, and a policy file does not keep it; leave it out: observations are normalised by training, "
                "and only the order of returns counts",
                RuntimeWarning,
                stacklevel=2,
            )
        environment = getattr(environment, "env", None)
