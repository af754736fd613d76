"""Folders of results: a specification, and per run a record and a checkpoint; records may be packed into one file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from cones import packed
from cones.errors import InputError
from cones.files import atomic_write, check_path, parsed_json
from cones.locks import locked
from cones.records.record import Record, read_record, record_from, write_record

__all__ = ["Folder", "Named"]

RECORD, POLICY = ".json.gz", ".policy.npz"


class Named(Protocol):
    """A run as far as its files are concerned."""

    @property
    def name(self) -> str:
        """The name of its files."""

    def specification(self) -> dict[str, Any]:
        """Everything that decides its numbers. Two runs with equal specifications are the same run."""


class Folder:
    """A folder of results. It belongs to one specification."""

    def __init__(self, path: str | PathLike[str]) -> None:
        check_path("folder", path)
        self.path = Path(path)
        self.runs = self.path / "runs"

    def make(self) -> None:
        """Create the folder if it does not exist."""
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path}: expected a folder for results, got a file")
        self.path.mkdir(parents=True, exist_ok=True)

    def claim(self, specification: Mapping[str, Any]) -> None:
        """Take the folder for an experiment; refuse a folder with records of another one."""
        place = self.path / "experiment.json"
        empty = not packed.names(self.runs)
        if place.exists() and not empty:
            if {**self.experiment(), "title": ""} != {**specification, "title": ""}:
                raise InputError(
                    f"{self.path}: holds records of another specification ({place.name} differs); "
                    "choose another folder, or move this one away (`cones resume` goes on with a training run)"
                )
            self.runs.mkdir(exist_ok=True)
            return
        if not empty:
            raise InputError(f"{self.path}: holds records but no {place.name}; choose another folder")
        self.runs.mkdir(parents=True, exist_ok=True)
        self.declare(specification)

    def declare(self, specification: Mapping[str, Any]) -> None:
        """Write the specification over the one before."""
        content = json.dumps(specification, indent=2).encode() + b"\n"
        with atomic_write(self.path / "experiment.json") as file:
            file.write(content)

    def experiment(self) -> dict[str, Any]:
        """The specification that the folder holds."""
        place = self.path / "experiment.json"
        try:
            data = parsed_json(place.read_text())
            if not isinstance(data, dict):
                raise ValueError("no table")
            return data
        except (FileNotFoundError, NotADirectoryError):
            raise InputError(f"{self.path}: expected a folder of results; there is no {place.name} in it") from None
        except ValueError as error:
            raise InputError(f"{place}: expected JSON: {error}") from None

    def record_path(self, run: Named) -> Path:
        return self.runs / f"{run.name}{RECORD}"

    def checkpoint_path(self, run: Named) -> Path:
        return self.runs / f"{run.name}.ckpt"

    def policy_path(self, run: Named) -> Path:
        return self.runs / f"{run.name}{POLICY}"

    def write(self, run: Named, finished: bool, stop: str, columns: Mapping[str, Any]) -> None:
        write_record(self.record_path(run), run.specification(), finished, stop, columns)

    def is_finished(self, run: Named) -> bool:
        """True if the record of this run is complete."""
        path = self.record_path(run)
        if not packed.is_there(path):
            return False
        record = read_record(path)
        if record.run != json.loads(json.dumps(run.specification())):
            raise InputError(f"{path}: a record of another specification; choose another folder, or move it away")
        return record.finished

    def is_without_checkpoint(self, run: Named) -> bool:
        """True if there is a record of this run, and nothing to go on from."""
        return packed.is_there(self.record_path(run)) and not self.checkpoint_path(run).exists()

    def locked(self) -> AbstractContextManager[None]:
        """Lock the folder against other processes; the end of a process releases its lock."""
        return locked(
            self.path / ".lock", f"{self.path}: another process is running in this folder; wait for it, or stop it"
        )

    def records(self) -> list[Record]:
        """All records in the order of their names."""
        return [record_from(content, path) for path, content in packed.contents(self.runs, RECORD)]

    def has_records(self) -> bool:
        return any(name.endswith(RECORD) for name in packed.names(self.runs))

    def policies(self) -> list[Path]:
        """The places of all policies, which may be packed."""
        return [self.runs / name for name in packed.names(self.runs) if name.endswith(POLICY)]

    def pack(self) -> int:
        """Put all records and policies into one file, `runs.zip`. Returns how many it holds.

        The folder is read as before, and its runs can go on: what they write replaces what is packed. Checkpoints stay.
        """
        self.experiment()
        with self.locked():
            self.records()  # or an error, before anything is changed
            return packed.pack(self.runs, lambda name: name.endswith((RECORD, POLICY)))
