"""Checks of what components hand to each other: a mistake in a user's own component is named where it is made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cones.beliefs import Belief, Gaussian, Step
from cones.errors import InputError
from cones.progress import RESERVED

__all__ = ["check_columns", "check_step", "checked_pair"]


def checked_pair(result: Any, kind: type | tuple[type, ...], component: object) -> Any:
    """What a component returned, if it is a pair of an object of a class and a state."""
    if type(result) is tuple and len(result) == 2 and isinstance(result[0], kind):
        return result
    names = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
    raise InputError(
        f"{type(component).__name__}: expected to return ({names}, state), got {type(result).__name__} {result!r:.60}"
    )


def check_step(belief: Belief, step: Step[Any], component: object) -> None:
    """Refuse a step of another shape than the belief."""
    name = type(component).__name__
    if getattr(step.shift, "shape", None) != belief.mean.shape:
        raise InputError(f"{name}: expected a shift of shape {belief.mean.shape}, got {step.shift!r:.60}")
    if isinstance(belief, Gaussian) and step.log_ratio is None:
        raise InputError(f"{name}: expected a step with log_ratio for a {type(belief).__name__}, got None")


def check_columns(names: Iterable[str]) -> None:
    """Refuse columns of components that have names of the library's own."""
    for name in names:
        if name in RESERVED:
            raise InputError(f"history: expected another name for a component's column, got {name!r}, which is taken")
