"""Pages that may be missing: a toctree entry `?adaptive` is listed if there is such a page, and patterns work, too."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]


def list_what_is_there(app: Any, docname: str, source: list[str]) -> None:
    if docname == "index":
        source[0] = re.sub(r"^\?(\S+)$", _pages, source[0], flags=re.MULTILINE)


def _pages(match: re.Match[str]) -> str:
    found = [path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.glob(f"{match[1]}.md")]
    return "\n".join(sorted(found, key=lambda name: (not name.endswith("/index"), name)))


def setup(app: Any) -> dict[str, Any]:
    app.connect("source-read", list_what_is_there)
    return {"parallel_read_safe": True}
