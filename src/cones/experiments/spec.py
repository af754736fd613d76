"""An experiment as data: every method on every problem, or task, with every seed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from cones.fields import check_fields
from cones.records.method import MethodSpec, file_name
from cones.records.problem import ProblemSpec
from cones.rl.spec import TaskSpec, TrainingRun

__all__ = ["AnyRun", "Experiment", "Run"]


@dataclass(frozen=True)
class Run:
    """One method on one problem with one seed."""

    problem: ProblemSpec
    method: MethodSpec
    seed: int
    mean: float
    sigma: float

    @property
    def on(self) -> ProblemSpec:
        return self.problem

    @property
    def name(self) -> str:
        return file_name(self.problem.label, self.method.label, self.seed)

    def specification(self) -> dict[str, Any]:
        return {
            "problem": self.problem.specification(),
            "method": self.method.method,
            "label": self.method.label,
            "settings": self.method.settings,
            "maxfev": self.method.maxfev,
            "seed": self.seed,
            "start": {"mean": self.mean, "sigma": self.sigma},
        }


AnyRun = Run | TrainingRun


@dataclass(frozen=True)
class Experiment:
    """Every method on every problem with every seed."""

    name: str
    problems: tuple[ProblemSpec, ...]
    methods: tuple[MethodSpec, ...]
    mean: float = 0.0
    sigma: float = 1.0
    title: str = ""
    tasks: tuple[TaskSpec, ...] = ()  # instead of problems

    def runs(self) -> list[AnyRun]:
        """All runs, the first seed of everything before the second of anything."""
        most = max(len(method.seeds) for method in self.methods)
        runs: list[AnyRun] = []
        on: tuple[ProblemSpec | TaskSpec, ...] = (*self.problems, *self.tasks)
        for place, what, method in product(range(most), on, self.methods):
            if place >= len(method.seeds):
                continue
            if isinstance(what, TaskSpec):
                runs.append(TrainingRun(what, method, method.seeds[place]))
            else:
                budgeted = method.with_budget(what.maxfev)
                runs.append(Run(what, budgeted, method.seeds[place], self.mean, what.sigma or self.sigma))
        return runs

    def specification(self) -> dict[str, Any]:
        parts = {name: [each.specification() for each in getattr(self, name)] for name in ("problems", "tasks")}
        data = json.loads(json.dumps({**asdict(self), **parts}))
        # What an experiment on functions and one on tasks do not share.
        for name in ("problems", "mean", "sigma") if self.tasks else ("tasks",):
            del data[name]
        return data  # type: ignore[no-any-return]

    @staticmethod
    def from_specification(data: Mapping[str, Any]) -> Experiment:
        """The experiment whose `specification()` this is."""
        parts = dict(data)
        for entry in parts.get("problems", ()):
            check_fields(ProblemSpec, entry)
        parts["problems"] = tuple(ProblemSpec(**entry) for entry in parts.get("problems", ()))
        parts["tasks"] = tuple(map(TaskSpec.from_specification, parts.get("tasks", ())))
        parts["methods"] = tuple(map(MethodSpec.from_specification, parts["methods"]))
        check_fields(Experiment, parts)
        return Experiment(**parts)
