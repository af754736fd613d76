"""Peers for hundreds of dimensions: LM-CMA, LM-MA-ES and MMES of PyPop7, and CR-FM-NES."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.bbob.problems import Task

__all__ = ["crfmnes", "pypop7"]

Settings = Mapping[str, Any]


def pypop7(module: str, name: str) -> Callable[[Task, Settings], None]:
    """An optimizer of PyPop7. It restarts by itself, with twice the population, from a uniform point."""

    def run(task: Task, settings: Settings) -> None:
        optimizer = getattr(importlib.import_module(f"pypop7.optimizers.es.{module}"), name)
        n = task.x0.size
        problem = {
            "fitness_function": task.fun,
            "ndim_problem": n,
            "lower_boundary": np.full(n, -5.0),
            "upper_boundary": np.full(n, 5.0),
            "initial_lower_boundary": np.full(n, -4.0),
            "initial_upper_boundary": np.full(n, 4.0),
        }
        options = {
            "max_function_evaluations": task.fun.budget,
            "mean": task.x0,
            "sigma": task.sigma0,
            "seed_rng": task.seed,
            "verbose": 0,
            **settings,
        }
        optimizer(problem, options).optimize()

    return run


def crfmnes(task: Task, settings: Settings) -> None:
    """CR-FM-NES. The package has no restarts, so it gets the rule of PyPop7.

    A descent ends when sigma is below 1e-12, or the best loss has improved by less than 1e-12 in 10 + 30 n / popsize
    generations. The next one starts at a uniform point with twice the population.
    """
    from crfmnes import CRFMNES

    n = task.x0.size
    popsize = 4 + int(3 * np.log(n))
    popsize += popsize % 2  # it has to be even
    for attempt in range(1000):
        optimizer = CRFMNES(
            n,
            lambda column: task.fun(column[:, 0]),
            task.point()[:, None],
            task.sigma0,
            popsize,
            seed=(task.seed + attempt) % 2**31,
            use_constraint_violation=False,
            **settings,
        )
        patience = int(10 + np.ceil(30 * n / popsize))
        best: list[float] = []
        while optimizer.sigma > 1e-12 and not (len(best) > patience and best[-patience] - best[-1] < 1e-12):
            optimizer.one_iteration()
            best.append(optimizer.f_best)
        popsize *= 2
