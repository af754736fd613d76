"""cones and its peers on a problem, one evaluation at a time. Each stops when the recorder says so."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import cones
from benchmarks.spaces.problems import OPTIONS, REACH, Problem

__all__ = ["METHODS", "RunEndedError", "Recorder"]


class RunEndedError(Exception):
    """The target is reached, or the budget is spent."""


class Recorder:
    """Counts evaluations and keeps the improvements."""

    def __init__(self, problem: Problem, budget: int) -> None:
        self.problem, self.budget = problem, budget
        self.count, self.best = 0, float("inf")
        self.improvements: list[list[float]] = []

    def __call__(self, values: dict[str, Any]) -> float:
        loss = self.problem.loss(values)
        self.count += 1
        if loss < self.best:
            self.best = loss
            self.improvements.append([self.count, loss])
        if self.best <= self.problem.target or self.count >= self.budget:
            raise RunEndedError
        return loss

    @property
    def hit(self) -> int | None:
        return self.count if self.best <= self.problem.target else None


def by_cones(recorder: Recorder, seed: int) -> None:
    cones.minimize(recorder, recorder.problem.space, rng=seed, maxfev=recorder.budget + 1000, noisy=False)


def by_catcma(recorder: Recorder, seed: int) -> None:
    """CatCMA with margin, of cmaes; restarts where it stops by itself."""
    from cmaes import CatCMAwM

    space = recorder.problem.space
    size, number = space.numbers // 2, 0
    while True:
        spaces: dict[str, Any] = {"c_space": [2] * space.flags or [OPTIONS] * len(space.choices)}
        if size:
            spaces["x_space"] = [[-REACH, REACH]] * size
            spaces["z_space"] = [list(range(-REACH, REACH + 1))] * size
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            optimizer, number = CatCMAwM(seed=1000 * number + seed, **spaces), number + 1
            while not optimizer.should_stop():
                told = []
                for _ in range(optimizer.population_size):
                    asked = optimizer.ask()
                    picked = np.asarray(asked.c).argmax(axis=1)
                    values = {"x": asked.x, "z": asked.z, "c": picked} if size else {"bits": picked == 1}
                    told.append((asked, recorder(values)))
                optimizer.tell(told)


def by_tpe(recorder: Recorder, seed: int) -> None:
    """Optuna's TPE, multivariate where there are few parameters."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = recorder.problem.space
    size = space.numbers // 2

    def objective(trial: Any) -> float:
        if not size:
            return recorder(
                {"bits": np.array([trial.suggest_categorical(f"b{k}", [0, 1]) for k in range(space.flags)])}
            )
        return recorder(
            {
                "x": np.array([trial.suggest_float(f"x{k}", -REACH, REACH) for k in range(size)]),
                "z": np.array([trial.suggest_int(f"z{k}", -REACH, REACH) for k in range(size)]),
                "c": np.array(
                    [trial.suggest_categorical(f"c{k}", list(range(OPTIONS))) for k in range(len(space.choices))]
                ),
            }
        )

    sampler = optuna.samplers.TPESampler(seed=seed)
    optuna.create_study(sampler=sampler).optimize(objective, n_trials=recorder.budget + 1)


def by_nevergrad(name: str) -> Callable[[Recorder, int], None]:
    def run(recorder: Recorder, seed: int) -> None:
        import nevergrad as ng

        parametrization = ng.p.Choice([0, 1], repetitions=recorder.problem.space.flags, deterministic=True)
        parametrization.random_state.seed(seed)
        optimizer = ng.optimizers.registry[name](parametrization, budget=recorder.budget)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            while True:
                asked = optimizer.ask()
                optimizer.tell(asked, recorder({"bits": np.array(asked.value)}))

    return run


METHODS: dict[str, Callable[[Recorder, int], None]] = {
    "cones": by_cones,
    "catcma": by_catcma,
    "tpe": by_tpe,
    "ng-1+1": by_nevergrad("DiscreteOnePlusOne"),
    "ng-cga": by_nevergrad("cGA"),
}
