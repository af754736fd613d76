"""What an experiment is: problems, methods, seeds and budgets, read from TOML.

name = "functions"
seeds = 10                    # seeds 0 to 9
maxfev = 100_000              # evaluations per run
start = { mean = 0.0, sigma = 1.0 }

[[problems]]
problem = "sphere"            # see `cones problems`
dim = 5000                    # optional: shift, rotation (a seed), noise

[[methods]]
method = "cones"              # see `cones methods`
popsize = 100                 # optional: label, seeds, maxfev, note, and the method's own settings
radius = 100.0
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cones.checks import check_integer, check_number, check_one_of, check_positive
from cones.errors import InputError
from cones.methods import METHODS
from cones.optimizers import SGD, Adam
from cones.problems import PROBLEMS, Problem, problem_from
from cones.strategy import Strategy

__all__ = ["Experiment", "MethodSpec", "ProblemSpec", "Run", "experiment_from", "read_experiment"]

RATES = ("optimizer", "learning_rate", "variance_learning_rate", "momentum")
OF_ALL = ("popsize", "xtol", "ftol", "stagnation", "ftarget", "maxtime")
OF_PIPELINE = ("belief", "antithetic", "shaping", *RATES)
SETTINGS = {
    "es": (*OF_ALL, *OF_PIPELINE),
    "nes": (*OF_ALL, *OF_PIPELINE),
    "cones": (*OF_ALL, *OF_PIPELINE, "radius", "solver"),
    "cma": (*OF_ALL, "diagonal", "options"),
}


@dataclass(frozen=True)
class ProblemSpec:
    """A problem with its dimension and what is done to it."""

    problem: str
    dim: int
    shift: float | None = None
    rotation: int | None = None
    noise: float | None = None

    def make(self) -> Problem:
        return problem_from(self.problem, self.dim, shift=self.shift, rotation=self.rotation, noise=self.noise)

    @property
    def label(self) -> str:
        """As in titles: the problem's name, and its dimension."""
        words = [self.problem.replace("_", "-").title()]
        words += [f"+{self.shift:g}"] if self.shift is not None else []
        words += [f"rotated {self.rotation}"] if self.rotation is not None else []
        words += [f"noise {self.noise:g}"] if self.noise is not None else []
        return f"{' '.join(words)}, {self.dim}-D"


@dataclass(frozen=True)
class MethodSpec:
    """A method with its settings, its seeds and its budget."""

    label: str
    method: str
    seeds: tuple[int, ...]
    maxfev: int
    settings: dict[str, Any] = field(default_factory=dict)
    note: str = ""

    def make(self, problem: Problem, mean: float, sigma: float, seed: int) -> Strategy:
        settings = {name: value for name, value in self.settings.items() if name not in RATES}
        rates = {name: value for name, value in self.settings.items() if name in RATES}
        if rates:
            kind = check_one_of("optimizer", rates.pop("optimizer", "adam"), ("adam", "sgd"))
            if kind == "adam" and "momentum" in rates:
                raise InputError('momentum: expected with optimizer = "sgd" only')
            settings["optimizer"] = (SGD if kind == "sgd" else Adam)(**rates)
        # An experiment runs for its budget; tolerances end it only where it asks for them.
        settings = {"xtol": None, "ftol": None, "stagnation": None, **settings}
        start = np.full(problem.dim, mean)
        return METHODS[self.method](start, sigma, rng=seed, maxfev=self.maxfev, **settings)


@dataclass(frozen=True)
class Run:
    """One method on one problem with one seed."""

    problem: ProblemSpec
    method: MethodSpec
    seed: int
    mean: float
    sigma: float

    @property
    def name(self) -> str:
        """The name of its files."""
        words = f"{self.problem.label} {self.method.label} seed {self.seed}"
        return re.sub(r"[^a-z0-9.+]+", "-", words.lower()).strip("-")

    def specification(self) -> dict[str, Any]:
        """All that decides its numbers. Two runs with equal specifications are the same run."""
        return {
            "problem": asdict(self.problem),
            "method": self.method.method,
            "label": self.method.label,
            "settings": self.method.settings,
            "maxfev": self.method.maxfev,
            "seed": self.seed,
            "start": {"mean": self.mean, "sigma": self.sigma},
        }

    def start(self) -> Strategy:
        return self.method.make(self.problem.make(), self.mean, self.sigma, self.seed)


@dataclass(frozen=True)
class Experiment:
    """Every method on every problem with every seed."""

    name: str
    problems: tuple[ProblemSpec, ...]
    methods: tuple[MethodSpec, ...]
    mean: float = 0.0
    sigma: float = 1.0
    title: str = ""

    def runs(self) -> list[Run]:
        """All runs, the first seed of everything before the second of anything."""
        most = max(len(method.seeds) for method in self.methods)
        return [
            Run(problem, method, method.seeds[place], self.mean, self.sigma)
            for place in range(most)
            for problem in self.problems
            for method in self.methods
            if place < len(method.seeds)
        ]

    def specification(self) -> dict[str, Any]:
        return json.loads(json.dumps(asdict(self)))  # type: ignore[no-any-return]

    @staticmethod
    def from_specification(data: Mapping[str, Any]) -> Experiment:
        """The experiment whose `specification()` this is."""
        parts = dict(data)
        parts["problems"] = tuple(ProblemSpec(**entry) for entry in parts["problems"])
        parts["methods"] = tuple(MethodSpec(**{**entry, "seeds": tuple(entry["seeds"])}) for entry in parts["methods"])
        return Experiment(**parts)


def read_experiment(path: str | Path) -> Experiment:
    """The experiment of a TOML file."""
    try:
        with open(path, "rb") as file:
            data = tomllib.load(file)
    except OSError as error:
        raise InputError(f"{path}: expected an experiment file ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: expected TOML: {error}") from None
    try:
        return experiment_from(data)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def experiment_from(data: Mapping[str, Any]) -> Experiment:
    """The experiment of a parsed TOML file. Every key is checked."""
    keys = _Keys(data, "", ("name", "title", "seeds", "maxfev", "start", "problems", "methods"))
    seeds = _seeds("seeds", keys.get("seeds", 1))
    maxfev = check_integer("maxfev", keys.need("maxfev"), 1)
    start = _Keys(keys.get("start", {}), "start.", ("mean", "sigma"))
    experiment = Experiment(
        name=_name(keys.need("name")),
        title=str(keys.get("title", "")),
        problems=tuple(_problem(entry, f"problems[{i}].") for i, entry in enumerate(_tables(keys, "problems"))),
        methods=tuple(
            _method(entry, f"methods[{i}].", seeds, maxfev) for i, entry in enumerate(_tables(keys, "methods"))
        ),
        mean=check_number("start.mean", start.get("mean", 0.0)),
        sigma=check_positive("start.sigma", start.get("sigma", 1.0)),
    )
    _check_names(experiment)
    # Settings that cannot work are found now, not in a worker.
    for i, problem in enumerate(experiment.problems):
        try:
            PROBLEMS[problem.problem](problem.dim)
        except InputError as error:
            raise InputError(f"problems[{i}].{error}") from None
        for j, method in enumerate(experiment.methods):
            # A full covariance takes long to set up in many dimensions.
            dim = min(problem.dim, 100) if method.settings.get("belief") == "full" else problem.dim
            try:
                method.make(problem_from("sphere", dim), experiment.mean, experiment.sigma, 0)
            except (InputError, TypeError) as error:
                raise InputError(f"methods[{j}].{error}") from None
    return experiment


def _check_names(experiment: Experiment) -> None:
    """Every run must have a name of its own: it is the name of its files."""
    labels = [method.label for method in experiment.methods]
    if len({label.lower() for label in labels}) < len(labels):
        raise InputError(f"methods: expected a label for each, got {', '.join(labels)}; give `label` where one repeats")
    names: dict[str, Run] = {}
    for run in experiment.runs():
        other = names.setdefault(run.name, run)
        if other is not run:
            raise InputError(
                f"problems, methods: expected runs with different names, got {run.name!r} for "
                f"{other.problem.label} {other.method.label} and for {run.problem.label} {run.method.label}; "
                "leave one out, or choose labels that differ in letters of a file name"
            )


class _Keys:
    """A table of which every key must be known."""

    def __init__(self, table: Any, place: str, known: tuple[str, ...]) -> None:
        if not isinstance(table, Mapping):
            raise InputError(f"{place.rstrip('.') or 'the file'}: expected a table, got {table!r}")
        for name in table:
            if name not in known:
                raise InputError(f"{place}{name}: unknown key; expected one of {', '.join(known)}")
        self._table, self._place = table, place

    def get(self, name: str, default: Any) -> Any:
        return self._table.get(name, default)

    def need(self, name: str) -> Any:
        if name not in self._table:
            raise InputError(f"{self._place}{name}: expected this key, and it is missing")
        return self._table[name]


def _tables(keys: _Keys, name: str) -> list[Any]:
    tables = keys.need(name)
    if not isinstance(tables, list) or not tables:
        raise InputError(f"{name}: expected at least one [[{name}]] table")
    return tables


def _problem(table: Any, place: str) -> ProblemSpec:
    keys = _Keys(table, place, ("problem", "dim", "shift", "rotation", "noise"))
    shift, rotation, noise = (keys.get(name, None) for name in ("shift", "rotation", "noise"))
    return ProblemSpec(
        problem=check_one_of(f"{place}problem", keys.need("problem"), tuple(PROBLEMS)),
        dim=check_integer(f"{place}dim", keys.need("dim"), 1),
        shift=None if shift is None else check_number(f"{place}shift", shift),
        rotation=None if rotation is None else check_integer(f"{place}rotation", rotation, 0),
        noise=None if noise is None else check_positive(f"{place}noise", noise),
    )


def _method(table: Any, place: str, seeds: tuple[int, ...], maxfev: int) -> MethodSpec:
    known = tuple(table) if isinstance(table, Mapping) else ()
    name = check_one_of(f"{place}method", _Keys(table, place, known).need("method"), tuple(METHODS))
    keys = _Keys(table, place, ("method", "label", "seeds", "maxfev", "note", *SETTINGS[name]))
    labels = {"es": "ES", "nes": "NES", "cones": "CoNES", "cma": "CMA"}
    return MethodSpec(
        label=str(keys.get("label", labels[name])),
        method=name,
        seeds=_seeds(f"{place}seeds", keys.get("seeds", list(seeds))),
        maxfev=check_integer(f"{place}maxfev", keys.get("maxfev", maxfev), 1),
        settings={key: table[key] for key in SETTINGS[name] if key in table},
        note=str(keys.get("note", "")),
    )


def _name(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"\w[\w.-]*", value):
        raise InputError(f"name: expected letters, digits, '.', '-' and '_' to name a folder, got {value!r}")
    return value


def _seeds(name: str, value: Any) -> tuple[int, ...]:
    if isinstance(value, list):
        seeds = tuple(check_integer(name, seed, 0) for seed in value)
        if not seeds or len(set(seeds)) < len(seeds):
            raise InputError(f"{name}: expected different seeds, at least one, got {value}")
        return seeds
    return tuple(range(check_integer(name, value, 1)))
