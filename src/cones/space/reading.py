"""Search spaces from what users have: TOML or JSON tables, ConfigSpace, Optuna distributions, SciPy bounds.

A table with a string under `type` is a parameter, any other is a group:

    [lr]
    type = "float"          # low, high, log, shape; "integer" takes the same
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
from cones.space.parameters import Choice, Flag, Float, Integer, Parameter
from cones.space.space import Space

__all__ = ["read_space", "space_from", "space_from_tables"]

KEYS = {
    "float": ("low", "high", "log", "shape"),
    "integer": ("low", "high", "log", "shape"),
    "choice": ("options", "shape"),
    "flag": ("shape",),
}


def space_from(value: Any) -> Any:
    """The space that an object describes; the object itself if it describes none.

    Objects are recognised by their type, without importing their packages: a `ConfigSpace.ConfigurationSpace` without
    conditions, a dict of Optuna distributions or of parameters, and a `scipy.optimize.Bounds`, whose space has one
    array, `x`.
    """
    if _comes_from(value, "ConfigSpace") and hasattr(value, "values"):
        return _from_configspace(value)
    if _comes_from(value, "scipy") and hasattr(value, "lb") and hasattr(value, "ub"):
        return Space(x=Float(value.lb, value.ub))
    if isinstance(value, Mapping) and value:
        return Space({name: _parameter(name, part) for name, part in value.items()})
    return value


def _comes_from(value: Any, package: str) -> bool:
    return type(value).__module__.split(".")[0] == package


def _parameter(name: Any, part: Any) -> Any:
    """A parameter from an Optuna distribution; anything else as it is."""
    kind = type(part).__name__
    if not _comes_from(part, "optuna") or kind not in (
        "FloatDistribution",
        "IntDistribution",
        "CategoricalDistribution",
    ):
        return part
    if kind == "CategoricalDistribution":
        return Choice(*part.choices)
    step = part.step
    if step is not None and not (kind == "IntDistribution" and step == 1):
        raise InputError(
            f"{name}: expected a distribution without steps, got {part}; use a Choice, or an Integer of steps"
        )
    return (Float if kind == "FloatDistribution" else Integer)(part.low, part.high, part.log)


def _from_configspace(configuration: Any) -> Space:
    for what in ("conditions", "forbidden_clauses"):
        found: Any = getattr(configuration, what, ())
        if len(found):
            raise InputError(f"space: expected a ConfigurationSpace without {what}, got {found[0]}")
    parameters: dict[str, Any] = {}
    for part in configuration.values():
        kind = type(part).__name__
        if kind in ("UniformFloatHyperparameter", "NormalFloatHyperparameter", "BetaFloatHyperparameter"):
            parameters[part.name] = Float(float(part.lower), float(part.upper), bool(part.log))
        elif kind in ("UniformIntegerHyperparameter", "NormalIntegerHyperparameter", "BetaIntegerHyperparameter"):
            parameters[part.name] = Integer(int(part.lower), int(part.upper), bool(part.log))
        elif kind == "CategoricalHyperparameter":
            parameters[part.name] = Choice(*part.choices)
        elif kind == "OrdinalHyperparameter":
            parameters[part.name] = Choice(*part.sequence)
        else:
            raise InputError(
                f"{part.name}: expected a float, integer, categorical or ordinal hyperparameter, got {kind}"
            )
    space = Space(parameters)
    start = {name: configuration[name].default_value for name in parameters}
    return space.starting_at({name: _plain(value) for name, value in start.items()})


def _plain(value: Any) -> Any:
    """A NumPy scalar as the Python value."""
    return value.item() if hasattr(value, "item") and not isinstance(value, str) else value


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
