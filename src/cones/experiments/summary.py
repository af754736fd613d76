"""Records by problem and method: means and standard deviations over seeds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from cones.errors import InputError
from cones.experiments.records import Folder, Record
from cones.experiments.spec import Experiment, ProblemSpec
from cones.types import Vector

__all__ = ["Group", "Summary", "summarise", "text_table"]


@dataclass(frozen=True)
class Group:
    """The records of one method on one problem, one per seed."""

    problem: str
    method: str
    note: str
    declared_seeds: int
    maxfev: int
    records: list[Record]

    @property
    def length(self) -> int:
        """Iterations that all seeds have done."""
        return min(record.columns["evaluations"].size for record in self.records)

    def curve(self, column: str) -> tuple[Vector, Vector, Vector]:
        """Evaluations, and mean and standard deviation of a column over seeds."""
        values = np.array([record.columns[column][: self.length] for record in self.records])
        return self.records[0].columns["evaluations"][: self.length], values.mean(axis=0), values.std(axis=0)

    def at_end(self, column: str) -> tuple[float, float]:
        """Mean and standard deviation over seeds, after the last iteration that all have done."""
        _, mean, deviation = self.curve(column)
        return float(mean[-1]), float(deviation[-1])

    @property
    def evaluations(self) -> int:
        return int(self.records[0].columns["evaluations"][self.length - 1])

    def seconds(self) -> tuple[float, float]:
        """Mean and standard deviation of the seconds per run."""
        values = np.array([record.seconds for record in self.records])
        return float(values.mean()), float(values.std())

    def seconds_per_evaluation(self) -> float:
        total = sum(record.columns["evaluations"][-1] for record in self.records)
        return sum(record.seconds for record in self.records) / float(total)

    @property
    def label(self) -> str:
        """What a reader must know of how this differs from the declared protocol, or nothing."""
        parts = [self.note] if self.note else []
        if len(self.records) < self.declared_seeds:
            parts.append(f"{len(self.records)} of {self.declared_seeds} seeds")
        if not all(record.finished for record in self.records):
            parts.append(f"stopped at {self.evaluations} of {self.maxfev} evaluations")
        early = sorted({record.stop for record in self.records if record.finished and record.stop != "maxfev"})
        if early:
            parts.append(f"ended by {', '.join(early)} at {self.evaluations} of {self.maxfev} evaluations")
        return "; ".join(parts)


@dataclass(frozen=True)
class Summary:
    """All groups of a folder, in the order of its experiment."""

    experiment: dict[str, Any]
    environments: list[dict[str, Any]]
    groups: list[Group]

    @property
    def problems(self) -> list[str]:
        return list(dict.fromkeys(group.problem for group in self.groups))

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(group.method for group in self.groups))

    def of(self, problem: str) -> list[Group]:
        return [group for group in self.groups if group.problem == problem]


def summarise(folder: Folder) -> Summary:
    """Group the records of a folder."""
    experiment = folder.experiment()
    try:
        runs = Experiment.from_specification(experiment).runs()
    except (TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{folder.path}: expected an experiment in experiment.json ({error})") from None
    declared = [json.loads(json.dumps(run.specification())) for run in runs]
    found: dict[tuple[str, str], list[Record]] = {}
    environments: list[dict[str, Any]] = []
    for record in folder.records():
        if record.run not in declared:
            raise InputError(
                f"{folder.path}: holds a record of another specification ({record.run.get('label')}, "
                f"seed {record.run.get('seed')}); move it away"
            )
        if record.columns["evaluations"].size:
            problem = ProblemSpec(**record.run["problem"]).label
            found.setdefault((problem, record.run["label"]), []).append(record)
            if record.environment not in environments:
                environments.append(record.environment)
    if not found:
        raise InputError(f"{folder.path}: expected records of runs, and there are none yet")
    groups = []
    for entry in experiment["problems"]:
        problem = ProblemSpec(**entry).label
        for method in experiment["methods"]:
            if records := found.get((problem, method["label"])):
                records.sort(key=lambda record: int(record.run["seed"]))
                groups.append(
                    Group(problem, method["label"], method["note"], len(method["seeds"]), method["maxfev"], records)
                )
    return Summary(experiment, environments, groups)


def text_table(summary: Summary) -> str:
    """The end of every run, for the terminal."""
    head = ("problem", "method", "seeds", "evaluations", "mean loss", "step of the mean", "seconds per run", "")
    rows = []
    for group in summary.groups:
        rows.append(
            (
                group.problem,
                group.method,
                str(len(group.records)),
                str(group.evaluations),
                plus_minus(*group.at_end("mean_loss")),
                plus_minus(*group.at_end("step")),
                plus_minus(*group.seconds()),
                group.label,
            )
        )
    widths = [max(len(row[place]) for row in (head, *rows)) for place in range(len(head))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)
    ]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def plus_minus(mean: float, deviation: float) -> str:
    return f"{mean:.4g} ± {deviation:.2g}"
