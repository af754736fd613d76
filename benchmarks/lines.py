"""Records with one line of JSON per run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

__all__ = ["run_missing"]


def run_missing(
    path: Path, keys: tuple[str, ...], cases: Iterable[tuple[Any, ...]], record: Callable[..., dict[str, Any]]
) -> None:
    """Call `record(*case)` for each case that the file does not have, and add a line at once.

    `keys` name the entries of a line that are its case.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    done = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
    known = {tuple(run[key] for key in keys) for run in done}
    for case in cases:
        if case not in known:
            line = json.dumps(record(*case))
            with path.open("a") as file:
                file.write(line + "\n")
