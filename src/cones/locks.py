"""Locks between processes: one writer of a checkpoint, one run in a folder.

A lock is a kernel lock on an empty file. It ends with its process, also when that is killed; a file that is left behind
locks nothing. Forked processes do not hold it, so workers that outlive a killed run do not keep it from being resumed.
"""

from __future__ import annotations

import errno
import importlib
import importlib.util
import os
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cones.errors import CheckpointError, InputError
from cones.files import NO_FOLLOW, check_path

fcntl: Any = importlib.import_module("fcntl") if importlib.util.find_spec("fcntl") else None  # not on Windows

__all__ = ["locked"]

_held: dict[tuple[str, int], object] = {}  # by path and process: the kernel does not tell threads of a process apart


@contextmanager
def locked(path: Path, refusal: str) -> Iterator[None]:
    """Hold the lock at `path` in the block. If another process or thread holds it: an InputError that says `refusal`.

    The file is never written to, and a link is not followed.
    """
    check_path("path", path)
    place = os.path.join(os.path.realpath(path.parent), path.name)
    key, mine = (place, os.getpid()), object()
    if _held.setdefault(key, mine) is not mine:
        raise InputError(refusal)
    handle = -1
    try:
        try:
            handle = _acquired(place, refusal)
        except OSError as error:
            raise CheckpointError(f"{path}: could not be written ({error.strerror})") from error
        yield
    finally:
        del _held[key]
        if handle >= 0:
            if os.getpid() == key[1]:  # not in a process that was forked in the block
                with suppress(OSError):
                    os.unlink(place)  # before its release: who opens it in between finds that it is gone
            os.close(handle)


def _acquired(place: str, refusal: str) -> int:
    """The handle of the locked file; -1 where there are no locks."""
    while fcntl is not None:
        handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | NO_FOLLOW, 0o666)
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode) or found.st_size:
                raise FileExistsError(errno.EEXIST, "expected a lock, got another file", place)
            try:
                fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in (errno.EACCES, errno.EAGAIN):
                    raise InputError(refusal) from None
                warnings.warn(f"{place}: no locks on this file system ({error.strerror})", RuntimeWarning, stacklevel=4)
                return handle
            if _is_at(place, handle):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # its owner has just removed it
    return -1


def _is_at(place: str, handle: int) -> bool:
    try:
        return os.path.samestat(os.lstat(place), os.fstat(handle))
    except FileNotFoundError:
        return False
