"""Files that are complete or not there: atomic writes, and JSON that cannot nest without bound."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

from cones.errors import InputError

fcntl: Any = importlib.import_module("fcntl") if importlib.util.find_spec("fcntl") else None  # not on Windows

__all__ = ["atomic_write", "check_folder", "check_path", "new_file", "parsed_json"]

NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def check_folder(name: str, path: str | PathLike[str]) -> None:
    """Refuse a file whose folder does not exist, before the work that it is to hold."""
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise InputError(f"{name}: no folder {folder} to write to")


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces `path` when the block ends. A crash or a full disk leaves the old file unchanged.

    The temporary file has a name of its own, so that two processes that write one file do not meet. What a killed
    process left is removed by the next write. The file can be read in the block, too.
    """
    check_path("path", path)
    target = Path(os.path.realpath(path))  # replace the target of a link, not the link
    _remove_leftovers(target)
    with new_file(target) as (temporary, file):
        yield file
        file.flush()
        os.fsync(file.fileno())
        os.replace(temporary, target)


@contextmanager
def new_file(target: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """A new temporary file next to `target`, locked while it is open and removed unless it was renamed.

    It is created exclusively: an existing file or link of its name is never opened.
    """
    while True:
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
        try:
            handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_FOLLOW, 0o666)
        except FileExistsError:
            continue
        file = os.fdopen(handle, "w+b")
        if _locked_by_us(file) and os.fstat(file.fileno()).st_nlink:
            break
        file.close()  # another process took it for a leftover before it was locked
    try:
        with file:
            yield temporary, file
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _locked_by_us(file: BinaryIO) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files of writers that are dead: the kernel has released their locks."""
    if fcntl is None:
        return
    left = re.compile(re.escape(f".{target.name}.") + r"[0-9a-f]{16}\.part")
    with suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if left.fullmatch(entry.name):
                _remove_leftover(entry.path)


def _remove_leftover(path: str) -> None:
    with suppress(OSError):  # it is gone, a link, or not ours
        handle = os.open(path, os.O_RDWR | os.O_NONBLOCK | NO_FOLLOW)
        with os.fdopen(handle, "rb", buffering=0):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)


def check_path(name: str, path: str | PathLike[str]) -> None:
    """Refuse a name that no file can have."""
    if "\0" in os.fspath(path):
        raise InputError(f"{name}: expected a path, got {os.fspath(path)!r:.80}, which contains a NUL character")


def parsed_json(text: str | bytes) -> Any:
    """The value of a JSON text; a ValueError if it is none, or nests too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("JSON that nests too deeply") from None
