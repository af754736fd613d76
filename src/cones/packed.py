"""The files of a folder in one archive beside it: `runs.zip` holds what `runs/` held.

A file is read from the folder if it is there, else from the archive. A run that goes on writes to the folder, so that
nothing in the archive is ever changed in place; packing again puts both into a new archive. Members are stored as they
are, without a date: the same files give the same archive, and any program for zip files opens it.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from cones.errors import InputError
from cones.files import atomic_write

__all__ = ["archive_of", "contents", "is_there", "names", "opened", "pack"]

DATE = (1980, 1, 1, 0, 0, 0)  # the first that a zip file can hold
MOST_MEMBERS = 100_000
FOLDER = "runs"  # the only one that is packed: a zip file beside another folder is somebody else's


def archive_of(folder: Path) -> Path:
    """Where the packed files of a folder are."""
    return folder.parent / f"{folder.name}.zip"


def names(folder: Path) -> list[str]:
    """The names of all files of a folder, packed or not, in order."""
    loose = {path.name for path in folder.iterdir() if path.is_file()} if folder.is_dir() else set()
    with _archive(folder) as archive:
        return sorted(loose | set(() if archive is None else archive.namelist()))


def is_there(path: Path) -> bool:
    """True if a file is there, packed or not."""
    if path.exists():
        return True
    with _archive(path.parent) as archive:
        return archive is not None and path.name in archive.namelist()


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading, packed or not."""
    if not path.exists():
        with _archive(path.parent) as archive:
            if archive is not None and path.name in archive.namelist():
                yield io.BytesIO(_content(archive, path.name))
                return
    with open(path, "rb") as file:
        yield file


def contents(folder: Path, ending: str) -> Iterator[tuple[Path, bytes]]:
    """All files whose name has this ending, packed or not, in the order of their names."""
    chosen = [name for name in names(folder) if name.endswith(ending)]
    with _archive(folder) as archive:
        for name in chosen:
            path = folder / name
            yield path, path.read_bytes() if archive is None or path.exists() else _content(archive, name)


def pack(folder: Path, wanted: Callable[[str], bool]) -> int:
    """Move the wanted files of a folder into its archive, beside what that holds. Returns how many files it holds then.

    The new archive is complete before the first file is removed.
    """
    loose = [name for name in names(folder) if wanted(name) and (folder / name).is_file()]
    if not loose:
        with _archive(folder) as archive:
            return 0 if archive is None else len(archive.namelist())
    with atomic_write(archive_of(folder)) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as new:
        for path, content in contents(folder, ""):
            if wanted(path.name):
                member = zipfile.ZipInfo(path.name, DATE)
                member.external_attr = 0o644 << 16
                new.writestr(member, content)
        count = len(new.namelist())
    for name in loose:
        (folder / name).unlink()
    if not any(folder.iterdir()):
        folder.rmdir()
    return count


@contextmanager
def _archive(folder: Path) -> Iterator[zipfile.ZipFile | None]:
    """The archive of a folder, or None. It is refused if reading it could take more than its own size."""
    place = archive_of(folder)
    if folder.name != FOLDER or not place.is_file():
        yield None
        return
    try:
        archive = zipfile.ZipFile(place)
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise InputError(f"{place}: expected a zip file of records ({error})") from None
    with archive:
        members = archive.infolist()
        found = {member.filename for member in members}
        if len(members) > MOST_MEMBERS or len(found) < len(members):
            raise InputError(f"{place}: expected a zip file of records; names in it repeat, or are too many")
        if any(not name or Path(name).name != name for name in found):
            raise InputError(f"{place}: expected a zip file of records; there are folders in it")
        stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
        if not stored or sum(member.file_size for member in members) > place.stat().st_size:
            raise InputError(f"{place}: expected a zip file of records that are stored as they are, not compressed")
        yield archive


def _content(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        return archive.read(name)
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, RuntimeError, NotImplementedError) as error:
        raise InputError(f"{archive.filename}: {name} is damaged ({error})") from None
