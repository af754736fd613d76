"""Records of runs on disk: one compressed JSON file per run, readable without this library."""

from __future__ import annotations

import gzip
import importlib
import importlib.util
import json
import math
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import cones
from cones.errors import InputError
from cones.experiments.spec import Experiment
from cones.files import atomic_write
from cones.types import Vector

fcntl: Any = importlib.import_module("fcntl") if importlib.util.find_spec("fcntl") else None  # not on Windows

__all__ = ["Folder", "Named", "Record", "environment", "read_record", "rounded"]

FORMAT, VERSION = "cones record", 1
PACKAGES = ("numpy", "scipy", "cma", "cmaes", "gymnasium", "mujoco", "numba")


class Named(Protocol):
    """A run as far as its files are concerned."""

    @property
    def name(self) -> str:
        """The name of its files."""

    def specification(self) -> dict[str, Any]:
        """All that decides its numbers. Two runs with equal specifications are the same run."""


@dataclass(frozen=True)
class Record:
    """A run as it was recorded: its specification, where it ran, and its columns by iteration."""

    run: dict[str, Any]
    finished: bool
    stop: str
    environment: dict[str, Any]
    columns: dict[str, Vector]

    @property
    def seconds(self) -> float:
        """Of evaluation and optimizer together; NaN where they are not on record."""
        return float(self.columns["evaluation_seconds"].sum() + self.columns["optimizer_seconds"].sum())


class Folder:
    """A folder of results. It belongs to one specification."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self.runs = self.path / "runs"

    def make(self) -> None:
        """Make the folder, if it is not there."""
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path}: expected a folder for results, and this is a file")
        self.path.mkdir(parents=True, exist_ok=True)

    def claim(self, experiment: Experiment) -> None:
        """Make the folder that of an experiment; refuse one that holds another."""
        place = self.path / "experiment.json"
        empty = not self.runs.exists() or not any(self.runs.iterdir())
        if place.exists() and not empty:
            if {**self.experiment(), "title": ""} != {**experiment.specification(), "title": ""}:
                raise InputError(
                    f"{self.path}: holds records of another specification ({place.name} differs); "
                    "choose another folder, or move this one away (`cones resume` goes on with a training run)"
                )
            return
        if not empty:
            raise InputError(f"{self.path}: holds records but no {place.name}; choose another folder")
        self.runs.mkdir(parents=True, exist_ok=True)
        self.declare(experiment)

    def declare(self, experiment: Experiment) -> None:
        """Write the specification, whatever was there."""
        content = json.dumps(experiment.specification(), indent=2).encode() + b"\n"
        with atomic_write(self.path / "experiment.json") as file:
            file.write(content)

    def experiment(self) -> dict[str, Any]:
        """The specification of the experiment whose folder this is."""
        place = self.path / "experiment.json"
        try:
            data = json.loads(place.read_text())
            if not isinstance(data, dict):
                raise ValueError("no table")
            return data
        except (FileNotFoundError, NotADirectoryError):
            raise InputError(f"{self.path}: expected a folder of results, and there is no {place.name} in it") from None
        except ValueError as error:
            raise InputError(f"{place}: expected JSON: {error}") from None

    def record_path(self, run: Named) -> Path:
        return self.runs / f"{run.name}.json.gz"

    def checkpoint_path(self, run: Named) -> Path:
        return self.runs / f"{run.name}.ckpt"

    def write(self, run: Named, finished: bool, stop: str, columns: Mapping[str, Any]) -> None:
        data = {
            "format": FORMAT,
            "version": VERSION,
            "run": run.specification(),
            "finished": finished,
            "stop": stop,
            "environment": environment(),
            # Seven digits: enough for any curve, and a third of the size.
            "columns": {name: [rounded(value) for value in column] for name, column in columns.items()},
        }
        # Without a time stamp inside, equal records are equal files.
        with atomic_write(self.record_path(run)) as file:
            file.write(gzip.compress(json.dumps(data, allow_nan=False).encode(), mtime=0))

    def is_finished(self, run: Named) -> bool:
        """Whether this very run is recorded to its end."""
        path = self.record_path(run)
        if not path.exists():
            return False
        record = read_record(path)
        if record.run != json.loads(json.dumps(run.specification())):
            raise InputError(f"{path}: a record of another specification; choose another folder, or move it away")
        return record.finished

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runners out while this one is at work; a crash releases it."""
        if fcntl is None:
            yield
            return
        with open(self.path / ".lock", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InputError(f"{self.path}: another runner is at work in this folder; stop it first") from None
            yield

    def records(self) -> list[Record]:
        """All records in the order of their names."""
        return [read_record(path) for path in sorted(self.runs.glob("*.json.gz"))]


def read_record(path: Path) -> Record:
    try:
        data = json.loads(gzip.decompress(path.read_bytes()))
        if data["format"] != FORMAT or data["version"] != VERSION:
            raise ValueError(f"format {data['format']!r}, version {data['version']!r}")
        columns = {name: np.array(column, dtype=np.float64) for name, column in data["columns"].items()}
        return Record(data["run"], data["finished"], data["stop"], data["environment"], columns)
    except Exception as error:  # whatever is wrong with a file, it is one error
        raise InputError(f"{path}: not a complete record ({error}); delete it and run again") from None


def rounded(value: float) -> float | int | None:
    """A number as records keep it."""
    if not math.isfinite(value):
        return None  # JSON has neither NaN nor infinity
    return int(value) if float(value).is_integer() and abs(value) < 1e15 else float(f"{value:.7g}")


def environment() -> dict[str, Any]:
    """Versions and machine."""
    versions = {"python": platform.python_version(), "cones": cones.__version__}
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
