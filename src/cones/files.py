"""Files that are complete or not there: written beside their place, and moved there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

__all__ = ["replacing"]


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of `path` at the end; a crash or a full disk leaves what was there.

    What a killed process leaves beside it has one name, so that the next write clears it away.
    """
    place = Path(os.path.realpath(path))  # through a link to the file itself
    temporary = place.with_name(f".{place.name}.part")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, place)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
