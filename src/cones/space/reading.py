"""Search spaces from what users have: objects of other packages, and TOML or JSON tables.

A table with a string under `type` is a parameter, any other is a group:

    [lr]
    type = "float"          # low, high, log, shape, step; "integer" takes the same
    low = 1e-5
    high = 1e-1
    log = true

    [act]
    type = "choice"         # options, shape; "flag" takes a shape alone
    options = ["relu", "tanh"]

A key `start` is the value at which a run starts.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cones.component import suggestion
from cones.errors import InputError
from cones.space.foreign import describes_space
from cones.space.parameters import Choice, Flag, Float, Integer, Parameter
from cones.space.space import Space

__all__ = ["read_space", "space_from", "space_from_tables"]

KEYS = {
    "float": ("low", "high", "log", "shape", "step"),
    "integer": ("low", "high", "log", "shape", "step"),
    "choice": ("options", "shape"),
    "flag": ("shape",),
}


def space_from(value: Any) -> Any:
    """The space that an object describes; the object itself if it describes none.

    A mapping of names to parameters, a `ConfigSpace.ConfigurationSpace` without conditions, a dict of Optuna
    distributions and a `scipy.optimize.Bounds`, whose space has one array, `x`, describe one.
    """
    return Space(value) if describes_space(value) or isinstance(value, Mapping) else value


def read_space(path: str) -> Space:
    """The space in a TOML or JSON file."""
    try:
        text = Path(path).read_text()
    except OSError as error:
        raise InputError(f"--space: {path} could not be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"--space: expected a TOML or JSON file, got {path}, which is no text") from None
    try:
        tables = json.loads(text, object_pairs_hook=_unique) if path.endswith(".json") else tomllib.loads(text)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"--space: {path} is not {'JSON' if path.endswith('.json') else 'TOML'} ({error})") from None
    return space_from_tables(tables)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for index, (name, _) in enumerate(pairs):
        if any(name == other for other, _ in pairs[:index]):
            raise InputError(f"--space: expected different names, got {name!r} twice")
    return dict(pairs)


def space_from_tables(tables: Any) -> Space:
    """The space that nested tables describe; see the top of this module."""
    if not isinstance(tables, Mapping):
        raise InputError(f"space: expected tables by name, got {tables!r:.80}")
    start: dict[str, Any] = {}
    space = Space(_group(tables, (), start))
    return space.starting_at(start) if start else space


def _group(tables: Mapping[str, Any], path: tuple[str, ...], start: dict[str, Any]) -> dict[str, Any]:
    group: dict[str, Any] = {}
    for name, table in tables.items():
        place = (*path, name)
        if not isinstance(table, Mapping):
            raise InputError(f"{'.'.join(place)}: expected a table with a type, got {table!r:.80}")
        if isinstance(table.get("type"), str):
            group[name] = _from_table(".".join(place), table)
            if "start" in table:
                start[".".join(place)] = table["start"]
        else:
            group[name] = _group(table, place, start)
    return group


def _from_table(name: str, table: Mapping[str, Any]) -> Parameter:
    kind = table["type"]
    if kind not in KEYS:
        raise InputError(f"{name}.type: expected one of {', '.join(KEYS)}, got {kind!r}{suggestion(kind, KEYS)}")
    settings = {key: value for key, value in table.items() if key not in ("type", "start")}
    for key in settings:
        if key not in KEYS[kind]:
            known = ", ".join((*KEYS[kind], "start"))
            raise InputError(f"{name}.{key}: expected one of {known}, got an unknown key{suggestion(key, KEYS[kind])}")
    shape = settings.get("shape", ())
    settings["shape"] = tuple(shape) if isinstance(shape, list) else shape
    try:
        if kind == "choice":
            options = settings.pop("options", ())
            if not isinstance(options, list):
                raise InputError(f"options: expected an array, got {options!r:.80}")
            return Choice(*options, **settings)
        made: Any = {"float": Float, "integer": Integer, "flag": Flag}[kind]
        return made(**settings)  # type: ignore[no-any-return]
    except InputError as error:
        raise InputError(f"{name}.{error}") from None
