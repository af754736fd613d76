"""Atomic writes: a file is written beside its destination and then moved there."""

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

    The temporary file has a fixed name: the next write removes what a killed process left.
    """
    target = Path(os.path.realpath(path))  # follows links
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
