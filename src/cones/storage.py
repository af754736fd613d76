"""Storage of objects in files: JSON for structure, and arrays, in one archive (see `cones.archive`).

A file contains data and no code. Loading creates objects of this library's classes and of classes that the caller
allows by name. Any other name is an error, and no module is imported. What is stored under a name must fit the
declaration of its class: fields by name, each of its type.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from cones.archive import Arrays, read_archive, write_archive
from cones.component import Storable, identifier, imported, storable
from cones.errors import CheckpointError, InputError, NotStorableError
from cones.fields import check_fields
from cones.files import check_path

__all__ = ["Allowed", "allowed_from", "check_storable", "read", "write"]

Allowed = Mapping[str, Any]


def write(path: str | PathLike[str], format_name: str, version: int, content: Mapping[str, Any]) -> None:
    """Write named objects to one file, atomically."""
    arrays: Arrays = {}
    header = {
        "format": format_name,
        "version": version,
        **{name: _pack(part, arrays) for name, part in content.items()},
    }
    write_archive(Path(path), header, arrays)


def check_storable(value: Any) -> None:
    """Raise a `NotStorableError` if a file cannot hold the value."""
    _pack(value, {})


def read(
    path: str | PathLike[str], format_name: str, version: int, names: Iterable[str], allow: Iterable[Any] = ()
) -> dict[str, Any]:
    """Read the objects that `write` stored under `names`. For `allow`, see `allowed_from`."""
    allowed = allowed_from(allow)
    check_path("path", path)
    if not Path(path).exists():
        raise CheckpointError(f"{path}: no such file")
    try:
        header, arrays = read_archive(Path(path))
        if header["format"] != format_name:
            raise ValueError(f"format {header['format']!r:.80}")
        if header["version"] != version:
            raise CheckpointError(
                f"{path}: expected version {version} of the format, which this release of cones reads, "
                f"got version {header['version']!r:.80}"
            )
        reader = _Reader(arrays, allowed)
        parts = {name: reader.unpacked(header[name]) for name in names}
        reader.check_all_used()
        return parts
    except CheckpointError:
        raise
    except Exception as error:  # a damaged file can raise anything
        why = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise CheckpointError(f"{path}: not a complete {format_name} ({why})") from error


def allowed_from(allow: Iterable[Any]) -> Allowed:
    """Classes and functions, or their names "module:Class", that a file may contain besides this library's.

    Allowing a component also allows the dataclasses of its module, because they hold its state.
    """
    allowed: dict[str, Any] = {}
    for thing in (allow,) if isinstance(allow, str) or callable(allow) else allow:
        if isinstance(thing, str):
            thing = imported(thing, "allow")
        if not callable(thing) or not hasattr(thing, "__qualname__"):
            raise InputError(f"allow: expected classes, functions or names such as 'module:Class', got {thing!r:.80}")
        allowed[identifier(thing)] = thing
        for other in vars(sys.modules[thing.__module__]).values():
            if inspect.isclass(other) and other.__module__ == thing.__module__ and _is_data(other):
                allowed[identifier(other)] = other
    return allowed


def _is_data(kind: type) -> bool:
    return dataclasses.is_dataclass(kind) or _is_named_tuple(kind)


def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def _pack(value: Any, arrays: Arrays) -> Any:
    """The value as JSON; its arrays go to `arrays`."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
        name = f"array{len(arrays)}"
        arrays[name] = np.asarray(value)
        return {"array" if isinstance(value, np.ndarray) else "scalar": name}
    kind = type(value)
    if isinstance(value, Storable):
        parts = value.stored()
    elif dataclasses.is_dataclass(value) and not inspect.isclass(value):
        parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    elif _is_named_tuple(kind):
        parts = value._asdict()
    elif kind is tuple:
        return {"tuple": [_pack(item, arrays) for item in value]}
    elif kind is list:
        return [_pack(item, arrays) for item in value]
    elif isinstance(value, Mapping) and all(type(key) is str for key in value):
        return {"dict": {key: _pack(item, arrays) for key, item in value.items()}}
    elif inspect.isfunction(value) and "<" not in value.__qualname__:
        return {"function": identifier(value)}
    else:
        raise NotStorableError(
            f"checkpoint: expected dataclasses, arrays, numbers, strings, tuples, lists or dicts with text as keys, "
            f"got a {kind.__name__}: {value!r:.80}"
        )
    if beyond := _beyond_fields(value):
        raise NotStorableError(
            f"checkpoint: expected {kind.__name__} to be made from its fields alone, got {', '.join(sorted(beyond))}"
        )
    if "<" in kind.__qualname__:
        raise CheckpointError(
            f"{kind.__qualname__}: cannot be stored in a checkpoint; define it at the top level of a module"
        )
    return {"type": identifier(kind), "parts": {name: _pack(part, arrays) for name, part in parts.items()}}


def _beyond_fields(value: Any) -> set[str]:
    """What a dataclass holds besides the fields that it is made from: a file would lose it."""
    if not dataclasses.is_dataclass(value):
        return set()
    fields = dataclasses.fields(value)
    extra = {name for name in getattr(value, "__dict__", ()) if not hasattr(type(value), name)}
    return {field.name for field in fields if not field.init} | (extra - {field.name for field in fields})


class _Reader:
    """Turns JSON back into objects."""

    def __init__(self, arrays: Arrays, allowed: Allowed) -> None:
        self._arrays, self._allowed, self._used = arrays, allowed, set[str]()

    def check_all_used(self) -> None:
        if unused := self._arrays.keys() - self._used:
            raise ValueError(f"arrays that belong to nothing: {', '.join(sorted(unused))}")

    def unpacked(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.unpacked(item) for item in value]
        if not isinstance(value, dict):
            return value
        if value.keys() == {"type", "parts"}:
            kind = self._known(value["type"])
            if not inspect.isclass(kind):
                raise ValueError(f"{value['type']} is no class")
            parts = {part: self.unpacked(item) for part, item in value["parts"].items()}
            check_fields(kind, parts)
            return kind.restored(parts) if issubclass(kind, Storable) else kind(**parts)
        ((tag, content),) = value.items()
        if tag == "array":
            return self._array(content)
        if tag == "scalar":
            return self._array(content)[()]
        if tag == "tuple":
            return tuple(self.unpacked(item) for item in content)
        if tag == "dict":
            return {key: self.unpacked(item) for key, item in content.items()}
        if tag != "function":
            raise ValueError(f"{tag!r:.80} is no kind of value")
        function = self._known(content)
        if not inspect.isfunction(function):
            raise ValueError(f"{content} is no function")
        return function

    def _array(self, name: str) -> np.ndarray[Any, Any]:
        self._used.add(name)
        return self._arrays[name]

    def _known(self, name: str) -> Any:
        known: Any = self._allowed.get(name) or storable(name)
        if known is None:
            raise CheckpointError(
                f"the checkpoint contains {name!s:.80}, which is not part of this library; if you trust it, allow it "
                f"by name: cones.load(path, allow=[{name!r:.80}]) or --allow {name!s:.80}"
            )
        return known
