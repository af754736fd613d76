"""Experiments read from TOML: problems, methods, seeds and budgets.

name = "functions"
seeds = 10                    # seeds 0 to 9
maxfev = 100_000              # evaluations per run
start = { mean = 0.0, sigma = 1.0 }

[[problems]]
problem = "sphere"            # see `cones problems`
dim = 5000                    # optional: shift, rotation (a seed), noise, relative_noise, corrupted, sigma, maxfev

[[methods]]
method = "cones"              # see `cones methods`
popsize = 100                 # optional: label, seeds, maxfev, note, and the method's own settings
radius = 100.0

Instead of problems an experiment may have tasks, on which policies are trained:

[[tasks]]
task = "Swimmer-v4"           # any gymnasium id; optional: hidden, bias, sigma, episodes, target, ...
timesteps = 3_000_000
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from cones.checks import check_fraction, check_integer, check_number, check_one_of, check_positive
from cones.errors import InputError
from cones.experiments.spec import AnyRun, Experiment
from cones.files import check_path
from cones.problems import PROBLEMS
from cones.records.keys import Keys
from cones.records.method import method_from, seeds_from
from cones.records.problem import ProblemSpec
from cones.rl.environments import spaces_of
from cones.rl.spec import TASK_KEYS, TrainingRun, task_from

__all__ = ["experiment_from", "read_experiment"]

LARGEST_FILE = 1_000_000  # characters
# Dotted keys take a time that grows with the square of their parts.
LONG_KEY = re.compile(r"""(?<![\w"'-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){200}""")


def read_experiment(path: str | Path) -> Experiment:
    """The experiment of a TOML file."""
    try:
        check_path("path", path)
        text = Path(path).read_bytes().decode()
        if len(text) > LARGEST_FILE or LONG_KEY.search(text):
            raise ValueError("a file that is too large, or a key of too many parts")
        data = tomllib.loads(text)
    except RecursionError:
        raise InputError(f"{path}: expected TOML that does not nest so deeply") from None
    except OSError as error:
        raise InputError(f"{path}: expected an experiment file ({error.strerror})") from None
    except InputError:
        raise
    except ValueError as error:  # TOML's, Unicode's, and ours
        raise InputError(f"{path}: expected TOML: {error}") from None
    try:
        return experiment_from(data)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def experiment_from(data: Mapping[str, Any]) -> Experiment:
    """The experiment of a parsed TOML file. Every key is checked."""
    keys = Keys(data, "", ("name", "title", "seeds", "maxfev", "timesteps", "start", "problems", "tasks", "methods"))
    seeds = seeds_from("seeds", keys.get("seeds", 1))
    experiment = _on_tasks(keys, seeds) if keys.has("tasks") else _on_functions(keys, seeds)
    _check_names(experiment)
    return experiment


def _on_functions(keys: Keys, seeds: tuple[int, ...]) -> Experiment:
    keys.refuse("timesteps", "maxfev, which counts evaluations: `timesteps` is for tasks")
    maxfev = check_integer("maxfev", keys.need("maxfev"), 1)
    start = Keys(keys.get("start", {}), "start.", ("mean", "sigma"))
    experiment = Experiment(
        name=_name(keys.need("name")),
        title=str(keys.get("title", "")),
        problems=tuple(_problem(entry, f"problems[{i}].") for i, entry in enumerate(keys.tables("problems"))),
        methods=tuple(
            method_from(entry, f"methods[{i}].", seeds, maxfev) for i, entry in enumerate(keys.tables("methods"))
        ),
        mean=check_number("start.mean", start.get("mean", 0.0)),
        sigma=check_positive("start.sigma", start.get("sigma", 1.0)),
    )
    # Settings that cannot work are found now, not in a worker.
    for i, problem in enumerate(experiment.problems):
        with _errors_in(f"problems[{i}]."):
            PROBLEMS[problem.problem](problem.dim)
        for j, method in enumerate(experiment.methods):
            # A full covariance takes long to set up in many dimensions.
            dim = min(problem.dim, 100) if method.settings.get("belief") == "full" else problem.dim
            with _errors_in(f"methods[{j}]."):
                budgeted = method.with_budget(problem.maxfev)
                budgeted.strategy(np.full(dim, experiment.mean), problem.sigma or experiment.sigma, 0)
    return experiment


def _on_tasks(keys: Keys, seeds: tuple[int, ...]) -> Experiment:
    for name in ("problems", "maxfev", "start"):
        keys.refuse(name, "tasks alone, each with timesteps and sigma")
    tasks = []
    for i, entry in enumerate(keys.tables("tasks")):
        table = Keys(entry, f"tasks[{i}].", TASK_KEYS)
        tasks.append(task_from(table.table, f"tasks[{i}].", keys.get("timesteps", None)))
        with _errors_in(f"tasks[{i}]."):
            spaces_of(tasks[-1].source)
    experiment = Experiment(
        name=_name(keys.need("name")),
        title=str(keys.get("title", "")),
        problems=(),
        tasks=tuple(tasks),
        methods=tuple(
            method_from(entry, f"methods[{i}].", seeds, None) for i, entry in enumerate(keys.tables("methods"))
        ),
    )
    for task, (j, method) in product(tasks, enumerate(experiment.methods)):
        with _errors_in(f"methods[{j}]."):
            TrainingRun(task, method, 0).check(task.source)
    return experiment


@contextmanager
def _errors_in(place: str) -> Iterator[None]:
    """Put the table's place before the messages of what was read from it."""
    try:
        yield
    except (InputError, TypeError) as error:
        raise InputError(f"{place}{error}") from None


def _check_names(experiment: Experiment) -> None:
    """Every run must have a name of its own: it is the name of its files."""
    labels = [method.label for method in experiment.methods]
    if len({label.lower() for label in labels}) < len(labels):
        raise InputError(f"methods: expected a label for each, got {', '.join(labels)}; give `label` where one repeats")
    names: dict[str, AnyRun] = {}
    for run in experiment.runs():
        other = names.setdefault(run.name, run)
        if other is not run:
            raise InputError(
                f"problems, methods: expected runs with different names, got {run.name!r} for "
                f"{other.on.label} {other.method.label} and for {run.on.label} {run.method.label}; "
                "leave one out, or choose labels that differ in letters of a file name"
            )


def _problem(table: Any, place: str) -> ProblemSpec:
    names = ("problem", "dim", "shift", "rotation", "noise", "relative_noise", "corrupted", "sigma", "maxfev")
    keys = Keys(table, place, names)
    shift, rotation = keys.get("shift", None), keys.get("rotation", None)
    return ProblemSpec(
        problem=check_one_of(f"{place}problem", keys.need("problem"), tuple(PROBLEMS)),
        dim=check_integer(f"{place}dim", keys.need("dim"), 1),
        shift=None if shift is None else check_number(f"{place}shift", shift),
        rotation=None if rotation is None else check_integer(f"{place}rotation", rotation, 0),
        maxfev=check_integer(f"{place}maxfev", keys.need("maxfev"), 1) if keys.has("maxfev") else None,
        corrupted=check_fraction(f"{place}corrupted", keys.need("corrupted")) if keys.has("corrupted") else None,
        **{
            name: check_positive(f"{place}{name}", keys.need(name))
            for name in ("noise", "relative_noise", "sigma")
            if keys.has(name)
        },
    )


def _name(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"\w[\w.-]*", value):
        raise InputError(f"name: expected letters, digits, '.', '-' and '_' to name a folder, got {value!r}")
    return value
