"""Components: the exchangeable parts of a method, and their declarations.

A component is a dataclass. Its class declares:

    kind      the interface that it implements, such as "estimator"; set by the interface
    name      what users write for it, such as estimator="asebo"
    settings  its dataclass fields, each with a help text: `rank: int = setting(10, "Directions to keep.")`
    state     what it remembers; any dataclass, array, number, string, tuple, list or dict can be stored

Checkpoints, experiment files, the command line, `--help` and the reference read this declaration. Users choose a
component by its name, by `"name,setting=value,..."`, by a table `{"name": ..., setting: value}`, or, for a custom one,
by `"module:Class"`. `"name:value"` is short for the first setting. They may also pass the object.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import inspect
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

from cones.errors import InputError

__all__ = [
    "Component",
    "Storable",
    "changed",
    "check_declared",
    "component_from",
    "components",
    "found",
    "identifier",
    "imported",
    "is_own",
    "setting",
    "settings_of",
    "suggestion",
    "table_of",
]

_COMPONENTS: dict[str, dict[str, type[Component]]] = {}
WORDS = {"True": True, "False": False, "None": None}
_INTERFACES: dict[str, type] = {}
_STORABLE: dict[str, type] = {}


def identifier(thing: Any) -> str:
    """Module and name of a class or function, such as "cones.optimizers.adam:Adam"."""
    return f"{thing.__module__}:{thing.__qualname__}"


class Storable:
    """A class whose objects a checkpoint may contain."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.startswith("cones."):
            _STORABLE[identifier(cls)] = cls

    def stored(self) -> dict[str, Any]:
        """What `restored` needs to rebuild an equal object; by default, the fields of the dataclass."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Any:
        return cls(**parts)


def changed(value: Any, **changes: Any) -> Any:
    """`dataclasses.replace` at a fifth of its time, for a frozen dataclass without `__post_init__`."""
    if not changes.keys() <= value.__dict__.keys():
        raise TypeError(f"{type(value).__name__}: unknown fields {sorted(changes.keys() - value.__dict__.keys())}")
    new = object.__new__(type(value))
    new.__dict__.update(value.__dict__)
    new.__dict__.update(changes)
    return new


class Component(Storable):
    """An exchangeable part of a method."""

    kind: ClassVar[str]
    name: ClassVar[str]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in cls.__dict__:
            _INTERFACES[cls.kind] = cls
        if "name" in cls.__dict__ and cls.__module__.startswith("cones."):
            _COMPONENTS.setdefault(cls.kind, {})[cls.name] = cls


def storable(name: str) -> type | None:
    """The storable class of this library with this identifier, or None."""
    return _STORABLE.get(name)


def components(kind: str) -> dict[str, type[Any]]:
    """All components of a kind in this library, by name."""
    return dict(_COMPONENTS.get(kind, {}))


def setting(default: Any = dataclasses.MISSING, sentence: str = "", *, kind: str = "") -> Any:
    """A dataclass field with a sentence about it, for `--help` and the reference.

    A setting that is a component itself names its `kind`, so that it can be written as text, too.
    """
    return dataclasses.field(default=default, metadata={"sentence": sentence, "kind": kind})


def settings_of(component: type) -> dict[str, str]:
    """The settings of a component: help texts by name."""
    return {
        field.name: str(field.metadata.get("sentence", "")) for field in dataclasses.fields(component) if field.init
    }


def check_declared(component: type) -> None:
    """Refuse a class that has settings and is no dataclass."""
    if any(isinstance(value, dataclasses.Field) for value in vars(component).values()):
        raise InputError(f"{component.__name__}: expected a dataclass, got a class without @dataclass(frozen=True)")


def component_from(kind: str, value: Any) -> Any:
    """The component that a user's value stands for; see the top of this module."""
    interface = _INTERFACES[kind]
    if isinstance(value, interface):
        return value
    settings: dict[str, Any] = {}
    if isinstance(value, Mapping):
        settings = {str(name): part for name, part in value.items() if name != "name"}
        value = value.get("name")
    if isinstance(value, str):
        value, *assignments = value.split(",")
        if _is_short(value, components(kind)):
            value, _, first = value.partition(":")
            of_class = list(settings_of(components(kind)[value]))
            assignments = [f"{of_class[0] if of_class else 'value'}={first}", *assignments]
        settings = {**dict(_assignment(kind, text) for text in assignments), **settings}
    made: Any = found(kind, value) if isinstance(value, str) else value
    if not (inspect.isclass(made) and issubclass(made, interface)):
        names, hint = ", ".join(map(repr, components(kind))), suggestion(value, components(kind))
        raise InputError(
            f"{kind}: expected one of {names}, 'module:Class' or an object of class {interface.__name__}, "
            f"got {value!r:.80}{hint}"
        )
    check_declared(made)
    known = settings_of(made) if dataclasses.is_dataclass(made) else {}
    for name in settings:
        if name not in known:
            raise InputError(
                f"{kind}.{name}: unknown setting of {made.__name__}; expected one of {', '.join(known) or 'none'}"
                f"{suggestion(name, known)}"
            )
    fields: Any = dataclasses.fields(made) if known else ()  # type: ignore[arg-type]
    kinds = {field.name: str(field.metadata.get("kind", "")) for field in fields}
    parts = {name: component_from(kinds[name], part) if kinds[name] else part for name, part in settings.items()}
    try:
        return made(**parts)
    except TypeError as error:
        raise InputError(f"{kind}: cannot create {made.__name__}: {error}") from None


def table_of(value: Any) -> Any:
    """The table that `component_from` reads as this component; any other value as it is.

    Example:
        >>> import cones
        >>> table_of(cones.radius.PathLength(0.5))
        {'name': 'path_length', 'start_radius': 0.5}
    """
    if not isinstance(value, Component):
        return value
    kind, name = value.kind, getattr(value, "name", "")
    known = _COMPONENTS.get(kind, {}).get(name) is type(value)
    table: dict[str, Any] = {"name": name if known else identifier(type(value))}
    fields: Any = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
    for part in fields:
        chosen = getattr(value, part.name)
        if part.init and chosen != part.default:
            table[part.name] = table_of(chosen)
    return table


def found(kind: str, name: str) -> Any:
    """The class for a name or "module:Class"; None if the name is unknown."""
    return imported(name, kind) if ":" in name else _COMPONENTS.get(kind, {}).get(name)


def is_own(word: str) -> bool:
    """True for the "module:Class" of a user's own component."""
    return ":" in word and not any(_is_short(word, names) for names in _COMPONENTS.values())


def _is_short(word: str, names: Mapping[str, Any]) -> bool:
    """True for "name:value" of a component of this library."""
    name, colon, _ = word.partition(":")
    return bool(colon) and name in names


def imported(path: str, argument: str) -> Any:
    """The object at "module:name". Imports the module, which the user has named."""
    module_name, _, name = path.partition(":")
    if not name or not module_name or module_name.startswith(".") or module_name.endswith(".py"):
        raise InputError(f"{argument}: expected MODULE:NAME, such as mypackage.module:name, got {path!r}")
    try:
        thing: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise InputError(f"{argument}: no module named {error.name!r} in the current folder or installed") from None
    for part in name.split("."):
        if not hasattr(thing, part):
            raise InputError(f"{argument}: module {module_name} has no {name!r}")
        thing = getattr(thing, part)
    return thing


def suggestion(name: Any, known: Any) -> str:
    """A hint for a misspelt name, such as "; did you mean popsize?"; empty if no known name is close."""
    close = difflib.get_close_matches(str(name), list(known), 1, 0.6)
    return f"; did you mean {close[0]}?" if close else ""


def _assignment(kind: str, text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"{kind}: expected setting=value after the name, got {text!r}")
    if value in WORDS:
        return name.strip(), WORDS[value]
    for read in (json.loads, float):  # .5 and 1. are numbers, but not in JSON
        with suppress(ValueError):
            return name.strip(), read(value)
    return name.strip(), value
