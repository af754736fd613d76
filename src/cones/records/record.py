"""Records of runs: one compressed JSON file per run, readable without this library."""

from __future__ import annotations

import gzip
import json
import math
import os
import platform
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from cones.checks import check_kind
from cones.errors import InputError
from cones.files import atomic_write, parsed_json
from cones.packed import opened
from cones.types import Vector

__all__ = ["Record", "environment", "read_record", "record_from", "rounded", "write_record"]

FORMAT, VERSION = "cones record", 1
LARGEST_RATIO = 100  # of the size of a record to that of its file; 2 to 6 are usual
PACKAGES = ("cones", "numpy", "scipy", "cma", "cmaes", "gymnasium", "mujoco", "numba")


@dataclass(frozen=True)
class Record:
    """A run on disk.

    Attributes:
        run: its specification.
        finished: whether it ran to its end.
        stop: the name of its stop reason.
        environment: versions and machine.
        columns: one number per iteration each.
    """

    run: dict[str, Any]
    finished: bool
    stop: str
    environment: dict[str, Any]
    columns: dict[str, Vector]

    @property
    def seconds(self) -> float:
        """Time of evaluation and optimizer together; NaN where it was not recorded."""
        return float(self.columns["evaluation_seconds"].sum() + self.columns["optimizer_seconds"].sum())


def write_record(path: Path, run: Mapping[str, Any], finished: bool, stop: str, columns: Mapping[str, Any]) -> None:
    """Write a record. Without a time stamp inside, equal records are equal files."""
    data = {
        "format": FORMAT,
        "version": VERSION,
        "run": run,
        "finished": finished,
        "stop": stop,
        "environment": environment(),
        # Seven digits: enough for any curve, and a third of the size.
        "columns": {name: [rounded(value) for value in column] for name, column in columns.items()},
    }
    with atomic_write(path) as file:
        file.write(gzip.compress(json.dumps(data, allow_nan=False).encode(), mtime=0))


def read_record(path: Path) -> Record:
    """The record in a file, which may be packed."""
    try:
        with opened(path) as file:
            content = file.read()
    except OSError as error:
        raise InputError(f"{path}: could not be read ({error.strerror})") from None
    return record_from(content, path)


def record_from(content: bytes, path: Path) -> Record:
    """The record that a file holds; `path` is its place, for messages."""
    try:
        data = parsed_json(_decompressed(content))
        if data["format"] != FORMAT or data["version"] != VERSION:
            raise ValueError(f"format {data['format']!r:.80}, version {data['version']!r:.80}")
        for name, kind in (("run", dict), ("finished", bool), ("stop", str), ("environment", dict), ("columns", dict)):
            check_kind(name, data[name], kind)
        columns = {name: _column(name, column) for name, column in data["columns"].items()}
        if len({column.size for column in columns.values()}) > 1:
            raise ValueError("columns of different lengths")
        return Record(data["run"], data["finished"], data["stop"], data["environment"], columns)
    except Exception as error:  # whatever is wrong with a file, it is one error
        raise InputError(f"{path}: not a complete record ({error}); delete it and run again") from None


def _column(name: str, values: Any) -> Vector:
    """The numbers of a column; null is NaN."""
    if not isinstance(values, list) or not {*map(type, values)} <= {int, float, type(None)}:
        raise ValueError(f"{name}: expected a list of numbers")
    return np.array(values, dtype=np.float64)


def _decompressed(data: bytes) -> bytes:
    """The content of one gzip member, whose checksum is right and whose declared size is not out of proportion."""
    declared = int.from_bytes(data[-4:], "little")
    if declared > LARGEST_RATIO * len(data):
        raise ValueError(f"{len(data)} bytes that declare {declared}")
    stream = zlib.decompressobj(wbits=31)
    text = stream.decompress(data, declared + 1)
    if not stream.eof or stream.unused_data or len(text) != declared:
        raise ValueError("truncated, or followed by something else")
    return text


def rounded(value: float) -> float | int | None:
    """A number with seven digits; None if it is not finite."""
    if not math.isfinite(value):
        return None  # JSON has neither NaN nor infinity
    return int(value) if float(value).is_integer() and abs(value) < 1e15 else float(f"{value:.7g}")


def environment() -> dict[str, Any]:
    """Versions and machine."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "versions": versions,
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "processor": _processor(),
            "cores": os.cpu_count() or 1,
        },
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"
