"""Records: one JSON file per method, suite and dimension, with one line per problem."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.bbob.targets import EXPONENTS
from cones.files import atomic_write

__all__ = ["Record", "Run", "header", "read_records"]


@dataclass(frozen=True)
class Run:
    """One method on one problem. `hits[j]` is the evaluations at which target j was first reached, or None."""

    hits: list[int | None]
    best: float
    evaluations: int
    seconds: float
    error: str | None = None

    def as_dict(self) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "best": float(f"{self.best:.4g}"),
            "evaluations": self.evaluations,
            "seconds": round(self.seconds, 2),
            "hits": self.hits,
        }
        return entry if self.error is None else entry | {"error": self.error}


@dataclass
class Record:
    """The runs of one method on one suite in one dimension.

    Args:
        header: everything that decides the numbers; see `header`.
        runs: by (function, instance).
    """

    header: dict[str, Any]
    runs: dict[tuple[int, int], Run] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return str(self.header["label"])

    @property
    def suite(self) -> str:
        return str(self.header["suite"])

    @property
    def dimension(self) -> int:
        return int(self.header["dimension"])

    @property
    def budget(self) -> int:
        """Evaluations per dimension."""
        return int(self.header["budget"])

    @property
    def file_name(self) -> str:
        return f"{self.suite}-{self.dimension:03d}-{self.label}.json"

    def write(self, folder: Path) -> None:
        """Replace the file at once: a reader never sees half of it."""
        lines = ",\n".join(
            f'"f{function}-i{instance}": {json.dumps(run.as_dict())}'
            for (function, instance), run in sorted(self.runs.items())
        )
        text = f'{{"header": {json.dumps(self.header)},\n"runs": {{\n{lines}\n}}}}\n'
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(folder / self.file_name) as file:
            file.write(text.encode())

    @classmethod
    def read(cls, path: Path) -> Record:
        data = json.loads(path.read_text())
        runs = {}
        for name, entry in data["runs"].items():
            function, instance = name.removeprefix("f").split("-i")
            runs[int(function), int(instance)] = Run(**entry)
        return cls(data["header"], runs)

    def resumed(self, folder: Path) -> Record:
        """The record of an earlier session if there is one, else this one.

        Raises:
            ValueError: the file was made in another way.
        """
        path = folder / self.file_name
        if not path.exists():
            return self
        earlier = Record.read(path)
        if differ := sorted(k for k in self.header | earlier.header if self.header.get(k) != earlier.header.get(k)):
            was = ", ".join(f"{k} = {earlier.header.get(k)!r} there, {self.header.get(k)!r} now" for k in differ)
            raise ValueError(f"{path} was made in another way: {was}; use another --label or --out, or --fresh")
        return earlier


def header(
    method: str, label: str, settings: dict[str, Any], suite: str, dimension: int, budget: int, versions: dict[str, str]
) -> dict[str, Any]:
    """Everything that decides the numbers of a record."""
    return {
        "label": label,
        "method": method,
        "settings": settings,
        "suite": suite,
        "dimension": dimension,
        "budget": budget,
        "targets": f"10^{EXPONENTS[0]:g} .. 10^{EXPONENTS[-1]:g}, {len(EXPONENTS)} of them",
        "versions": versions,
    }


def read_records(folder: Path, labels: Iterable[str] | None = None) -> list[Record]:
    """All records of a folder, ordered by suite, dimension and label."""
    wanted = None if labels is None else set(labels)
    records = [Record.read(path) for path in sorted(folder.glob("bbob*.json"))]
    return [record for record in records if wanted is None or record.label in wanted]
