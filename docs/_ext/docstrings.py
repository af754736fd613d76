"""Docstrings as Sphinx wants them. They are plain text: equations and tables are set off by indentation or bars."""

from __future__ import annotations

import re
from typing import Any, is_typeddict

SECTION = re.compile(r"^(Args|Arguments|Attributes|Example|Examples|Returns|Raises|Reference):")

BARS = re.compile(r"\|(?=[^`]*(?:`[^`]*`[^`]*)*$)")  # outside of `code`, where they would name a substitution


def literal_blocks(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Before the first section, what is indented, and what is a table with bars, stays as it is typed."""
    if is_typeddict(obj):  # one key per line after the summary: what napoleon knows as arguments
        lines[2:] = ["Args:", *(f"    {line}" for line in lines[2:])]
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
