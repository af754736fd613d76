"""What an experiment is: every method on every problem, or task, with every seed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from cones.experiments.method import MethodSpec, file_name
from cones.problems import Problem, problem_from
from cones.rl.run import TaskSpec, TrainingRun
from cones.strategy import Strategy

if TYPE_CHECKING:
    from cones.experiments.session import Session

__all__ = ["AnyRun", "Experiment", "ProblemSpec", "Run"]


@dataclass(frozen=True)
class ProblemSpec:
    """A problem with its dimension and what is done to it."""

    problem: str
    dim: int
    shift: float | None = None
    rotation: int | None = None
    noise: float | None = None
    relative_noise: float | None = None
    sigma: float | None = None  # of the start, instead of the experiment's

    def make(self) -> Problem:
        return problem_from(
            self.problem,
            self.dim,
            shift=self.shift,
            rotation=self.rotation,
            noise=self.noise,
            relative_noise=self.relative_noise,
        )

    def specification(self) -> dict[str, Any]:
        """Without what is not given, apart from the oldest keys, which every record has."""
        always = ("problem", "dim", "shift", "rotation", "noise")
        return {name: value for name, value in asdict(self).items() if name in always or value is not None}

    @property
    def label(self) -> str:
        """As in titles: the problem's name, and its dimension."""
        words = [self.problem.replace("_", "-").title()]
        words += [f"+{self.shift:g}"] if self.shift is not None else []
        words += [f"rotated {self.rotation}"] if self.rotation is not None else []
        words += [f"noise {self.noise:g}"] if self.noise is not None else []
        words += [f"noise {100 * self.relative_noise:g}%"] if self.relative_noise is not None else []
        words += [f"sigma {self.sigma:g}"] if self.sigma is not None else []
        return f"{' '.join(words)}, {self.dim}-D"


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

    def session(self, kept: tuple[Strategy, dict[str, Any]] | None = None) -> Session:
        """The run at work: from its start, or from what a checkpoint has kept."""
        from cones.experiments.session import FunctionSession

        problem = self.problem.make()
        if kept is None:
            start = np.full(problem.dim, self.mean)
            return FunctionSession(problem, self.method.strategy(start, self.sigma, self.seed))
        return FunctionSession(problem, *kept)


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
                runs.append(Run(what, method, method.seeds[place], self.mean, what.sigma or self.sigma))
        return runs

    def specification(self) -> dict[str, Any]:
        data = json.loads(json.dumps({**asdict(self), "problems": [p.specification() for p in self.problems]}))
        # What an experiment on functions and one on tasks do not share.
        for name in ("problems", "mean", "sigma") if self.tasks else ("tasks",):
            del data[name]
        return data  # type: ignore[no-any-return]

    @staticmethod
    def from_specification(data: Mapping[str, Any]) -> Experiment:
        """The experiment whose `specification()` this is."""
        parts = dict(data)
        parts["problems"] = tuple(ProblemSpec(**entry) for entry in parts.get("problems", ()))
        parts["tasks"] = tuple(
            TaskSpec(**{**entry, "hidden": tuple(entry["hidden"])}) for entry in parts.get("tasks", ())
        )
        parts["methods"] = tuple(MethodSpec(**{**entry, "seeds": tuple(entry["seeds"])}) for entry in parts["methods"])
        return Experiment(**parts)
