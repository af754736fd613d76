"""The run that a folder keeps, and what of the user's own it may import."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from cones.checks import check_integer
from cones.component import identifier
from cones.errors import InputError
from cones.packed import is_there
from cones.records.folder import Folder
from cones.records.record import read_record
from cones.rl.environments import check_task_allowed
from cones.rl.spec import TrainingRun

__all__ = ["kept_run", "listed"]


def kept_run(
    folder: str | PathLike[str], timesteps: float | None = None, allow: Iterable[Any] = ()
) -> tuple[TrainingRun, list[Any]]:
    """The only run of a folder, with another budget if one is given, and the components that `allow` has for it.

    What the folder names of the user's own must be in `allow`.
    """
    place = Folder(folder)
    data = place.experiment()
    try:
        run = TrainingRun.from_experiment(data)
        components = _allowed(run, listed(allow))
    except InputError as error:
        raise InputError(f"{folder}: {error}") from None
    except (TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{folder}: expected an experiment in experiment.json ({error})") from None
    record, checkpoint = place.record_path(run), place.checkpoint_path(run)
    recorded = read_record(record).columns["timesteps"] if is_there(record) else np.empty(0)
    done = int(recorded[-1]) if recorded.size else 0  # none, if not even the first iteration was complete
    if done and not checkpoint.exists():
        raise InputError(f"{folder}: {done} timesteps are recorded, but the checkpoint {checkpoint.name} is not there")
    if timesteps is None:
        return run, components
    budget = check_integer("timesteps", timesteps, 1)
    if budget < done:
        raise InputError(f"timesteps: expected at least the {done} that are done, got {budget}")
    return replace(run, task=replace(run.task, timesteps=budget)), components


def _allowed(run: TrainingRun, allow: list[Any]) -> list[Any]:
    """The components in `allow`; an error if the run names one, or a task with a module, that is not there."""
    names = {thing if isinstance(thing, str) else identifier(thing): thing for thing in allow if _has_name(thing)}
    check_task_allowed(run.task.task, names)
    components = {name: thing for name, thing in names.items() if name != run.task.task}
    for name in run.method.own_components():
        if name not in components:
            raise InputError(f"the run names {name}; if you trust it, allow it by name: --allow {name}")
    return list(components.values())


def _has_name(thing: Any) -> bool:
    return isinstance(thing, str) or hasattr(thing, "__qualname__")


def listed(things: Any) -> list[Any]:
    """What may be one thing, several or None, as a list."""
    if things is None:
        return []
    return list(things) if isinstance(things, (list, tuple, set, frozenset)) else [things]
