"""Check values from a file against the declared types of dataclass fields."""

from __future__ import annotations

import collections.abc
import dataclasses
import types
import typing
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from cones.errors import InputError

__all__ = ["check_fields"]


def check_fields(kind: type, parts: Mapping[str, Any]) -> None:
    """Refuse parts of a dataclass of this library that have other types than its fields."""
    if not (dataclasses.is_dataclass(kind) and kind.__module__.startswith("cones.")):
        return
    hints = _hints(kind)
    for name, value in parts.items():
        if name in hints and not _fits(value, hints[name]):
            raise InputError(f"{kind.__name__}.{name}: expected {_text(hints[name])}, got {value!r:.80}")


@lru_cache
def _hints(kind: type) -> dict[str, Any]:
    fields = {field.name for field in dataclasses.fields(kind)}
    return {name: hint for name, hint in typing.get_type_hints(kind).items() if name in fields}


def _fits(value: Any, hint: Any) -> bool:
    if hint is Any:
        return True
    origin, inner = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is typing.Literal:
        return value in inner
    if hint is float:
        return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if hint is bool:
        return isinstance(value, (bool, np.bool_))
    if origin is np.ndarray:
        declared = typing.get_args(inner[1])[0] if len(inner) > 1 and typing.get_args(inner[1]) else np.float64
        kinds = (np.float64, np.float32) if declared is np.float64 else (declared,)
        return isinstance(value, np.ndarray) and value.dtype in kinds
    if origin is tuple and inner and isinstance(value, tuple):
        each = inner[:1] * len(value) if inner[-1] is Ellipsis else inner
        return len(each) == len(value) and all(map(_fits, value, each))
    if origin is collections.abc.Callable:
        return callable(value)
    return isinstance(value, origin) if isinstance(origin, type) else True  # a type variable


def _text(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")
