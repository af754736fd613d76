"""A training run as data: the task, the policy, the method with its settings, the seed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from cones.checks import check_bool, check_integer, check_number, check_one_of, check_positive
from cones.errors import InputError
from cones.fields import check_fields
from cones.radius import PathLength
from cones.records.method import RATES, MethodSpec, file_name, method_from
from cones.restarts import Refining
from cones.rl.policy import Network
from cones.rl.rollouts import network_of
from cones.rl.source import Source, source_from
from cones.rl.tasks import PAPER, PaperTask
from cones.run.iterate import check_asynchronous
from cones.steps import Balls
from cones.strategy import Strategy
from cones.types import Vector

__all__ = ["TASK_KEYS", "TaskSpec", "TrainingRun", "new_run", "task_from"]

# For tasks that are not the paper's.
OTHERS = {"hidden": 16, "learning_rate": 0.05, "variance_learning_rate": 0.05}
# A training run has a few hundred iterations, and its episodes are noisy. With the smaller first radius of
# `radius="adaptive"` elsewhere, HalfCheetah is slower.
FIRST_RADIUS = 1.2
# Weights that only grow saturate all units, and what is learnt last is a gait between the bounds of the actions. They
# are held at this many initial spreads, or at the size for which units have inputs of variance 1, if that is more.
HELD_SPREADS = 3.0
# The spread is SPREAD sqrt(popsize / n) of the size by fan-in, or that size if it is less. In each iteration the mean
# moves by about half a spread per weight, most of it noise, and n weights take some n / popsize iterations to learn:
# in that time noise moves weights by 1.5 times their size. With less, more of Hopper's policies keep standing still.
SPREAD = 3.0
# On a plateau training goes on with a quarter of the spread, and on the next one it begins anew. Each descent has at
# least PATIENCE times the n / popsize iterations that n weights take to learn, and at least LEAST_ITERATIONS.
PATIENCE, LEAST_ITERATIONS = 3.0, 150
BY_PLATEAU: dict[str, Any] = {"xtol": None, "ftol": None, "stagnation": None}
ADAPTIVE, ZEROS, RANDOM = "adaptive", "zeros", "random"
START = 3  # what random numbers are for; the others are in `cones.rl.training`


@dataclass(frozen=True)
class TaskSpec:
    """An environment, the policy's network, and how long and how often it is run."""

    task: str
    timesteps: int
    hidden: tuple[int, ...]
    bias: bool
    sigma: float | None  # initial deviation of the weights; None: the paper's, or by the fan-in of each unit
    episodes: int = 1  # per candidate and iteration
    common_starts: bool | None = None  # all candidates of an iteration have the same starts; None: not in the paper's
    evaluate_every: int = 5  # iterations between evaluations of the mean policy
    evaluation_episodes: int = 10
    target: float | None = None  # a reward to reach; it ends nothing
    env_kwargs: dict[str, Any] = field(default_factory=dict)  # what the environment is made with
    early_end: bool = False  # end episodes that are as good as sure to be among the worse half
    asynchronous: bool = False  # a worker that is free gets a new candidate at once
    start: str | None = None  # the first mean: "zeros", or "random" hidden units; None: the paper's, or random

    @property
    def label(self) -> str:
        return self.task

    @property
    def source(self) -> Source:
        return Source(self.task, self.env_kwargs)

    def specification(self) -> dict[str, Any]:
        data = asdict(self)
        for name in ("env_kwargs", "early_end", "asynchronous"):
            if not data[name]:
                del data[name]  # records from before there was one are the same
        for name in ("common_starts", "start"):
            if data[name] is None:
                del data[name]
        return data

    @staticmethod
    def from_specification(data: Mapping[str, Any]) -> TaskSpec:
        parts = {**data, "hidden": tuple(data["hidden"])}
        check_fields(TaskSpec, parts)
        for name in ("timesteps", "episodes", "evaluate_every", "evaluation_episodes"):
            check_integer(name, parts[name], 1)
        for size in parts["hidden"]:
            check_integer("hidden", size, 1)
        if parts.get("common_starts") is not None:
            check_bool("common_starts", parts["common_starts"])
        if parts["sigma"] is not None:
            check_positive("sigma", parts["sigma"])
        if parts.get("start") is not None:
            check_one_of("start", parts["start"], (ZEROS, RANDOM))
        return TaskSpec(**parts)


TASK_KEYS = (
    "task", "timesteps", "hidden", "bias", "sigma", "episodes", "common_starts", "evaluate_every",
    "evaluation_episodes", "target", "env_kwargs", "early_end", "asynchronous", "start",
)  # fmt: skip


def task_from(table: Mapping[str, Any], place: str = "", timesteps: Any = None) -> TaskSpec:
    """The task of a TOML table or of keyword arguments; what is not given is the paper's, or a default."""
    task = table.get("task")
    if not isinstance(task, str) or not task:
        raise InputError(f"{place}task: expected the id of a gymnasium environment, such as Swimmer-v4, got {task!r}")
    given = {name: value for name, value in table.items() if value is not None}
    source = source_from(task, given.get("env_kwargs"))
    task = source.name
    paper = PAPER.get(task)
    hidden = given.get("hidden", paper.hidden if paper else OTHERS["hidden"])
    layers = tuple(hidden) if isinstance(hidden, (list, tuple)) else (hidden,)
    budget = given.get("timesteps", timesteps)
    if budget is None:
        budget = paper.limit if paper else 1e6
    target = given.get("target", paper.target if paper else None)
    sigma, start, common = given.get("sigma"), given.get("start"), given.get("common_starts")
    return TaskSpec(
        task=task,
        timesteps=check_integer(f"{place}timesteps", budget, 1),
        hidden=tuple(check_integer(f"{place}hidden", size, 1) for size in layers),
        bias=check_bool(f"{place}bias", given.get("bias", paper.bias if paper else True)),
        sigma=None if sigma is None else check_positive(f"{place}sigma", sigma),
        episodes=check_integer(f"{place}episodes", given.get("episodes", 1), 1),
        common_starts=None if common is None else check_bool(f"{place}common_starts", common),
        evaluate_every=check_integer(f"{place}evaluate_every", given.get("evaluate_every", 5), 1),
        evaluation_episodes=check_integer(f"{place}evaluation_episodes", given.get("evaluation_episodes", 10), 1),
        target=None if target is None else check_number(f"{place}target", target),
        env_kwargs=source.kwargs,
        early_end=check_bool(f"{place}early_end", given.get("early_end", False)),
        asynchronous=check_bool(f"{place}asynchronous", given.get("asynchronous", False)),
        start=None if start is None else check_one_of(f"{place}start", start, (ZEROS, RANDOM)),
    )


@dataclass(frozen=True)
class TrainingRun:
    """One method on one task with one seed."""

    task: TaskSpec
    method: MethodSpec
    seed: int

    @property
    def on(self) -> TaskSpec:
        return self.task

    @property
    def name(self) -> str:
        return file_name(self.task.label, self.method.label, self.seed)

    @property
    def paper(self) -> PaperTask | None:
        """The paper's setting of the task, if this run has it; adaptive radii have one setting for all tasks."""
        given = self.method.settings
        of_balls = _name(given.get("step")) == Balls.name
        is_adaptive = self.method.method == "cones" and (given.get("radius") == ADAPTIVE or of_balls)
        return None if is_adaptive else PAPER.get(self.task.task)

    @property
    def settings(self) -> dict[str, Any]:
        """The method's settings, with the paper's for this task where ES, NES and CoNES give none.

        Elsewhere CoNES has adaptive radii and no learning rates, and the popsize comes from the number of weights.
        """
        given, method, paper = self.method.settings, self.method.method, self.paper
        if method not in ("cones", "nes", "es"):
            return dict(given)
        defaults: dict[str, Any] = {"popsize": paper.popsize} if paper else {}
        if "step" in given:
            return {**defaults, **given}  # a step rule of its own: taken as it is
        if method == "cones" and not paper and not any(name in given for name in RATES):
            defaults["radius"] = ADAPTIVE
        if method == "cones" and paper:
            defaults["radius"] = paper.radius
        if {**defaults, **given}.get("radius") != ADAPTIVE and given.get("optimizer", "adam") == "adam":
            for name in ("learning_rate", "variance_learning_rate"):
                defaults[name] = getattr(paper, name) if paper else OTHERS[name]
        return {**defaults, **given}

    @property
    def sigma(self) -> float | None:
        """The initial deviation of the weights; None: by the fan-in of each unit."""
        paper = self.paper
        return paper.sigma if paper and self.task.sigma is None else self.task.sigma

    @property
    def start(self) -> str:
        """The first mean. A linear policy has no hidden units: it starts from zeros."""
        return self.task.start or (ZEROS if self.paper or not self.task.hidden else RANDOM)

    @property
    def common_starts(self) -> bool:
        """True if all candidates of an iteration have the same starts."""
        return self.paper is None if self.task.common_starts is None else self.task.common_starts

    def specification(self) -> dict[str, Any]:
        task = {**self.task.specification(), "sigma": self.sigma, "common_starts": self.common_starts}
        task["start"] = None if self.start == ZEROS else self.start
        for name in ("common_starts", "start"):
            if not task[name]:
                del task[name]  # records from before there was another one are the same
        return {
            "task": task,
            "method": self.method.method,
            "label": self.method.label,
            "settings": self.settings,
            "seed": self.seed,
        }

    def strategy(self, network: Network) -> Strategy:
        """The strategy at its start."""
        settings, unit = self.settings, network.deviations()
        if self.method.method in ("cones", "nes", "es"):
            settings.setdefault("popsize", popsize_for(network.dim))
        popsize = check_integer("popsize", settings.get("popsize", popsize_for(network.dim)), 1)
        sigma = self.sigma or unit * min(1.0, SPREAD * math.sqrt(popsize / network.dim))
        if settings.get("radius") == ADAPTIVE:
            hold = max(HELD_SPREADS * _size(sigma), _size(unit))
            settings["radius"] = Balls(mean=PathLength(FIRST_RADIUS, largest=1e6), hold=hold)
            if not self.task.asynchronous:
                settings.setdefault("restarts", Refining.name)
        if _name(settings.get("restarts")) == Refining.name:
            least = max(LEAST_ITERATIONS, math.ceil(PATIENCE * network.dim / popsize))
            settings = {**BY_PLATEAU, "plateau": least, **settings}
        mean = np.zeros(network.dim)
        if self.start == RANDOM:
            mean = network.random_start(np.random.default_rng((self.seed, START)), sigma)
        return self.method.strategy(mean, sigma, self.seed, settings, maxiter=math.inf)

    def check(self, source: Source) -> Strategy:
        """A strategy of the run's kind. Raises if the method does not work with the policy of the task."""
        network, _ = network_of(source, self.task.hidden, self.task.bias)
        if self.method.method in ("trcma", "cma") or self.method.settings.get("belief") == "full":
            network = Network((min(network.dim, 100), 1), bias=False)  # a full covariance takes long to set up
        return self.strategy(network)

    def experiment(self) -> dict[str, Any]:
        """The specification of an experiment that has this run only."""
        data = {
            "name": "training",
            "methods": [asdict(self.method)],
            "title": self.task.task,
            "tasks": [self.task.specification()],
        }
        return json.loads(json.dumps(data))  # type: ignore[no-any-return]

    @staticmethod
    def from_experiment(data: Mapping[str, Any]) -> TrainingRun:
        """The run whose `experiment()` this is."""
        tasks, methods = data.get("tasks", []), data["methods"]
        if len(tasks) != 1 or len(methods) != 1 or len(methods[0]["seeds"]) != 1:
            raise InputError("expected the folder of one training run, written by `cones train`")
        method = MethodSpec.from_specification(methods[0])
        return TrainingRun(TaskSpec.from_specification(tasks[0]), method, method.seeds[0])


def popsize_for(weights: int) -> int:
    """Candidates per iteration: 4 + 3 log(n), even, as of CMA-ES. With more, short trainings have too few iterations.

    Example:
        >>> popsize_for(81), popsize_for(5000)
        (16, 28)
    """
    return 2 * int(2.0 + 1.5 * math.log(weights))


def _name(component: Any) -> str:
    """The name in a setting, which is a text, a table or a component."""
    text = component.get("name") if isinstance(component, Mapping) else getattr(component, "name", component)
    return str(text).partition(",")[0]


def _size(values: Vector | float) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def new_run(source: Source, method: str, rng: int, timesteps: float | None, settings: Mapping[str, Any]) -> TrainingRun:
    """The run that keyword arguments describe. Each of them is checked."""
    of_task = {name: value for name, value in settings.items() if name in TASK_KEYS}
    of_method = {name: value for name, value in settings.items() if name not in TASK_KEYS}
    seed = check_integer("rng", rng, 0)
    spec = task_from({"task": source.name, "timesteps": timesteps, "env_kwargs": source.kwargs, **of_task})
    spec = replace(spec, task=source.name)  # a maker's name is no id
    run = TrainingRun(spec, method_from({"method": method, **of_method}, "", (seed,), None), seed)
    strategy = run.check(source)  # settings that cannot work are found before anything is written
    if spec.asynchronous:
        check_asynchronous(strategy)
    return run
