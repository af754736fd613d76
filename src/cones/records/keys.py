"""Tables of settings, from TOML or from keyword arguments, in which every key must be known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cones.errors import InputError

__all__ = ["Keys"]


class Keys:
    """A table whose keys are checked.

    Args:
        place: what stands before a key in messages, such as "methods[0].".
        known: the keys that the table may have.
    """

    def __init__(self, table: Any, place: str, known: tuple[str, ...]) -> None:
        if not isinstance(table, Mapping):
            raise InputError(f"{place.rstrip('.') or 'the file'}: expected a table, got {table!r}")
        for name in table:
            if name not in known:
                raise InputError(f"{place}{name}: unknown key; expected one of {', '.join(known)}")
        self.table, self._place = table, place

    def has(self, name: str) -> bool:
        return name in self.table

    def refuse(self, name: str, expected: str) -> None:
        if name in self.table:
            raise InputError(f"{self._place}{name}: expected {expected}")

    def get(self, name: str, default: Any) -> Any:
        return self.table.get(name, default)

    def need(self, name: str) -> Any:
        if name not in self.table:
            raise InputError(f"{self._place}{name}: missing required key")
        return self.table[name]

    def tables(self, name: str) -> list[Any]:
        """An array of tables, at least one."""
        tables = self.need(name)
        if not isinstance(tables, list) or not tables:
            raise InputError(f"{self._place}{name}: expected at least one [[{name}]] table")
        return tables
