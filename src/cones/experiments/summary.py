"""Records by problem and method: means and standard deviations over seeds."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cones.errors import InputError
from cones.experiments.spec import Experiment
from cones.plots.averages import mean_curve, measured
from cones.records.folder import Folder
from cones.records.problem import ProblemSpec
from cones.records.record import Record
from cones.rl.spec import TaskSpec
from cones.types import Vector

__all__ = ["Group", "Summary", "summarise"]


@dataclass(frozen=True)
class Group:
    """The records of one method on one problem or task, one per seed.

    Attributes:
        axis: the column that counts what is spent: evaluations, or timesteps.
        budget: how much of it was declared.
        target: a reward to reach, on tasks that have one.
    """

    problem: str
    method: str
    note: str
    declared_seeds: int
    axis: str
    budget: int
    records: list[Record]
    target: float | None = None

    def curve(self, column: str) -> tuple[Vector, Vector, Vector]:
        """Mean and standard deviation of a column over seeds, against what was spent, up to where the shortest seed is.

        Rows in which the column was not measured are left out. Seeds whose episodes differ in length have
        spent different amounts in the same iteration: their curves are interpolated at common points.
        """
        return mean_curve(self.seed_curves(column))

    def seed_curves(self, column: str) -> list[tuple[Vector, Vector]]:
        """A column of each seed against what it has spent, where it was measured."""
        return [measured(record.columns[self.axis], record.columns[column]) for record in self.records]

    @property
    def ends(self) -> Vector:
        """Where the seeds end."""
        return np.array([record.columns[self.axis][-1] for record in self.records])

    @property
    def ends_together(self) -> bool:
        """True if a mean over seeds covers most of each; seeds that are left at a target may end far apart."""
        return bool(2.0 * self.ends.min() >= self.ends.max())

    def at_end(self, column: str) -> tuple[float, float]:
        """Mean and standard deviation over seeds at the end of the shortest seed."""
        _, mean, deviation = self.curve(column)
        return (float(mean[-1]), float(deviation[-1])) if mean.size else (math.nan, math.nan)

    def to_target(self, column: str = "mean_reward") -> tuple[float, list[float]]:
        """What was spent when the mean over seeds first reached the target, and when each seed did; NaN for never."""
        x, mean, _ = self.curve(column)
        each = [_crossing(*curve, self.target) for curve in self.seed_curves(column)]
        return _crossing(x, mean, self.target), each

    @property
    def spent(self) -> int:
        """Evaluations or timesteps that every seed has spent."""
        return int(self.ends.min())

    def seconds_each(self) -> float:
        """Seconds per evaluation or timestep."""
        return sum(record.seconds for record in self.records) / float(self.ends.sum())

    @property
    def label(self) -> str:
        """How the records differ from the declared protocol; empty if they do not."""
        parts = [self.note] if self.note else []
        if len(self.records) < self.declared_seeds:
            parts.append(f"{len(self.records)} of {self.declared_seeds} seeds")
        where = f"at {self.spent} of {self.budget} {self.axis}"
        if not all(record.finished for record in self.records):
            parts.append(f"stopped {where}")
        early = {record.stop for record in self.records if record.finished} - {"maxfev", "timesteps"}
        if early:
            parts.append(f"ended by {', '.join(sorted(early))} {where}")
        return "; ".join(parts)


def _crossing(x: Vector, y: Vector, level: float | None) -> float:
    """Where y first reaches a level, interpolated; NaN if it never does."""
    if level is None or not (y >= level).any():
        return math.nan
    place = int(np.argmax(y >= level))
    if place == 0:
        return float(x[0])
    return float(np.interp(level, y[place - 1 : place + 1], x[place - 1 : place + 1]))


@dataclass(frozen=True)
class Summary:
    """All groups of a folder, in the order of its experiment."""

    experiment: dict[str, Any]
    environments: list[dict[str, Any]]
    groups: list[Group]
    missing: dict[str, list[str]] = field(default_factory=dict)  # by method: the problems of which it has no record

    @property
    def on_tasks(self) -> bool:
        """True if policies were trained, False if functions were minimised."""
        return bool(self.experiment.get("tasks"))

    @property
    def problems(self) -> list[str]:
        return list(dict.fromkeys(group.problem for group in self.groups))

    @property
    def methods(self) -> list[str]:
        """The methods that have records, in the order of the experiment."""
        there = list(dict.fromkeys(group.method for group in self.groups))
        declared = [method["label"] for method in self.experiment.get("methods", ())]
        return sorted(there, key=declared.index) if set(there) <= set(declared) else there

    def of(self, problem: str) -> list[Group]:
        return [group for group in self.groups if group.problem == problem]

    @property
    def notes(self) -> list[str]:
        """Differences from the declared protocol, a line per group, and missing runs."""
        others = [f"{group.method} on {group.problem}: {group.label}" for group in self.groups if group.label]
        methods: dict[str, list[str]] = {}
        for method, problems in self.missing.items():
            methods.setdefault(", ".join(problems), []).append(method)
        return others + [f"{', '.join(names)}: not run on {problems}" for problems, names in methods.items()]


def _identity(run: dict[str, Any]) -> str:
    """What all records of one run have in common. The budget of a training run may change."""
    if "task" in run:
        run = {**run, "task": {**run["task"], "timesteps": None}}
    return json.dumps(run, sort_keys=True)


def summarise(folder: Folder) -> Summary:
    """Group the records of a folder."""
    data = folder.experiment()
    try:
        experiment = Experiment.from_specification(data)
        declared = {_identity(run.specification()): run for run in experiment.runs()}
    except (TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{folder.path}: expected an experiment in experiment.json ({error})") from None
    found: dict[tuple[str, str], list[Record]] = {}
    environments: list[dict[str, Any]] = []
    for record in folder.records():
        run = declared.get(_identity(record.run))
        if run is None:
            raise InputError(
                f"{folder.path}: holds a record of another specification ({record.run.get('label')}, "
                f"seed {record.run.get('seed')}); move it away"
            )
        if record.columns["evaluations"].size:
            found.setdefault((run.on.label, run.method.label), []).append(record)
            if record.environment not in environments:
                environments.append(record.environment)
    if not found:
        raise InputError(f"{folder.path}: expected records of runs; there are none yet")
    groups = []
    missing: dict[str, list[str]] = {}
    on: tuple[ProblemSpec | TaskSpec, ...] = (*experiment.problems, *experiment.tasks)
    for what in on:
        for method in experiment.methods:
            if records := found.get((what.label, method.label)):
                records.sort(key=lambda record: int(record.run["seed"]))
                if isinstance(what, TaskSpec):
                    axis, budget, target = "timesteps", what.timesteps, what.target
                else:
                    axis, budget, target = "evaluations", int(method.with_budget(what.maxfev).maxfev or 0), None
                groups.append(
                    Group(
                        problem=what.label,
                        method=method.label,
                        note=method.note,
                        declared_seeds=len(method.seeds),
                        axis=axis,
                        budget=budget,
                        records=records,
                        target=target,
                    )
                )
            else:
                missing.setdefault(method.label, []).append(what.label)
    return Summary(data, environments, groups, missing)
