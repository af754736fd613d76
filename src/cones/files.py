"""Atomic writes: write a temporary file next to the target, then rename it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

__all__ = ["atomic_write"]


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces `path` when the block ends. A crash or a full disk leaves the old file unchanged.

    The temporary file has a fixed name, so that the next write replaces what a killed process left.
    """
    target = Path(os.path.realpath(path))  # replace the target of a link, not the link
    temporary = target.with_name(f".{target.name}.part")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
