"""Docstrings as Sphinx wants them. They are plain text: equations and tables are set off by indentation or bars."""

from __future__ import annotations

import re
from dataclasses import is_dataclass
from typing import Any, get_type_hints, is_typeddict

from cones.component import Component, settings_of

SECTION = re.compile(r"^(Args|Arguments|Attributes|Example|Examples|Returns|Raises|Reference):")

BARS = re.compile(r"\|(?=[^`]*(?:`[^`]*`[^`]*)*$)")  # outside of `code`, where they would name a substitution


def declared_settings(obj: Any) -> dict[str, str]:
    """The settings that a component or a table of keyword arguments declares, with their sentences."""
    if is_typeddict(obj):
        hints = get_type_hints(obj, include_extras=True)
        return {name: str(hint.__metadata__[0]) for name, hint in hints.items()}
    return settings_of(obj) if isinstance(obj, type) and issubclass(obj, Component) and is_dataclass(obj) else {}


def literal_blocks(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Before the first section, what is indented, and what is a table with bars, stays as it is typed."""
    declared = declared_settings(obj)
    if declared and not any(line.startswith("Args:") for line in lines):
        at = next((place for place, line in enumerate(lines) if SECTION.match(line)), len(lines))
        lines[at:at] = ["", "Args:", *(f"    {name}: {sentence}" for name, sentence in declared.items()), ""]
    out: list[str] = []
    inside = False
    for place, line in enumerate(lines):
        if SECTION.match(line):
            out += lines[place:]
            break
        apart = line.startswith(("    ", "| "))
        if apart and not inside:
            # An indented line that goes on with a sentence or a list is no block.
            inside = not out or not out[-1].strip() or line.startswith("| ")
            if inside:
                out += ["::", ""] if not out or not out[-1].strip() else ["", "::", ""]
        elif inside and line.strip() and not apart:
            inside = False
        if inside:
            out.append(f"    {line}" if line.strip() else line)
        else:
            out.append(BARS.sub(r"\\|", line))
    lines[:] = out


def setup(app: Any) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", literal_blocks, priority=400)  # before napoleon
    return {"parallel_read_safe": True}
