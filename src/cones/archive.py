"""Archives: a JSON header and named arrays in one file, with a checksum over all of it.

An archive is NumPy's `.npz` without compression: `np.load` reads it, too. Its last 64 bytes, the comment of the zip,
are the SHA-256 of all bytes before them. The checksum is verified before anything is read, and declared sizes before
memory is taken for them: reading costs no more than a few times the size of the file.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from cones.errors import CheckpointError
from cones.files import atomic_write, parsed_json
from cones.packed import opened

__all__ = ["Arrays", "read_archive", "write_archive"]

Arrays = dict[str, np.ndarray[Any, Any]]

DIGEST = 64  # characters of a SHA-256 in hexadecimal
CHUNK = 2**20
LARGEST_HEADER = 10_000  # bytes in front of an array's numbers
ARCHIVE_MEMBERS = 100_000
KINDS = "biufcSUmM"  # of dtypes: numbers, text and dates; neither objects nor structures


def write_archive(path: Path, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write a header and named arrays to one file, atomically."""
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    try:
        with atomic_write(path) as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
                for name, array in {"header": text, **arrays}.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
                archive.comment = b"0" * DIGEST
            file.flush()
            digest = _digest(file, file.seek(0, os.SEEK_END) - DIGEST)
            file.seek(-DIGEST, os.SEEK_END)
            file.write(digest)
    except OSError as error:
        raise CheckpointError(f"{path}: could not be written ({error})") from error


def read_archive(path: Path) -> tuple[Any, Arrays]:
    """The header and the arrays of a file; a ValueError if it is not exactly as it was written."""
    with opened(path) as file:
        size = file.seek(0, os.SEEK_END)
        if not zipfile.is_zipfile(file):
            raise ValueError("truncated, or not a zip file")
        file.seek(max(0, size - DIGEST))
        checksum = file.read()
        if not re.fullmatch(rb"[0-9a-f]{64}", checksum):
            raise ValueError("no checksum at its end: written by an earlier release of cones, or damaged")
        if checksum != _digest(file, size - DIGEST):
            raise ValueError("the checksum differs: the file is damaged")
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            names = [member.filename.removesuffix(".npy") for member in members]
            if len(members) > ARCHIVE_MEMBERS or len(set(names)) < len(names):
                raise ValueError("members that repeat")
            if any(member.compress_type != zipfile.ZIP_STORED for member in members):
                raise ValueError("compressed members")
            if sum(member.file_size for member in members) > size:
                raise ValueError("members that are larger than the file")
            arrays = {name: _read(archive, member) for name, member in zip(names, members, strict=True)}
    if "header" not in arrays:
        raise ValueError("no header")
    return parsed_json(arrays.pop("header").tobytes()), arrays


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray[Any, Any]:
    """The array of a member whose header declares as many bytes as follow it."""
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"an array of version {version}")
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, by_columns, dtype = reader(file, max_header_size=LARGEST_HEADER)
        count = math.prod(shape)
        if dtype.kind not in KINDS or any(length < 0 for length in shape):
            raise ValueError(f"an array of {dtype}, shape {shape}")
        if count * dtype.itemsize != member.file_size - file.tell():
            raise ValueError(f"{member.file_size} bytes for an array of {dtype}, shape {shape}")
        array = np.empty(count, dtype)
        if count and dtype.itemsize:
            view, place = array.view(np.uint8), 0
            while chunk := file.read(CHUNK):
                view[place : place + len(chunk)] = np.frombuffer(chunk, np.uint8)
                place += len(chunk)
            if place < view.size:
                raise ValueError("truncated")
        array = array.astype(dtype.newbyteorder("="), copy=False)
        return array.reshape(shape[::-1]).T if by_columns else array.reshape(shape)


def _digest(file: BinaryIO, size: int) -> bytes:
    """The SHA-256 of the first `size` bytes, in hexadecimal."""
    digest, left = hashlib.sha256(), size
    file.seek(0)
    while left > 0 and (chunk := file.read(min(CHUNK, left))):
        digest.update(chunk)
        left -= len(chunk)
    return digest.hexdigest().encode()
