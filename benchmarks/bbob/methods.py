"""The methods by name: cones, and peers for few dimensions and for many.

A method is called once per problem and evaluates until `Finished` is raised, or until it has nothing left to try.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.optimize import NonlinearConstraint

from benchmarks.bbob.largescale import crfmnes, pypop7
from benchmarks.bbob.problems import Task

__all__ = ["METHODS", "PACKAGES"]

Settings = Mapping[str, Any]


def cones(task: Task, settings: Settings) -> None:
    """One call of `cones.minimize` with its defaults, or with the settings that are given."""
    from cones import minimize

    limits = task.fun.constraints
    constraints = () if limits is None else NonlinearConstraint(limits, -np.inf, 0.0)
    common: dict[str, Any] = {"maxfev": task.fun.budget, "rng": task.seed, **settings}
    minimize(task.fun, task.x0, sigma0=task.sigma0, constraints=constraints, **common)


def pycma(**fixed: Any) -> Callable[[Task, Settings], None]:
    """PyCMA with restarts and growing populations (IPOP), or BIPOP with `bipop`."""

    def run(task: Task, settings: Settings) -> None:
        import cma

        options = {"maxfevals": task.fun.budget, "seed": task.seed, "verbose": -9, **settings}
        arguments = dict(fixed)
        options |= arguments.pop("options", {})
        if arguments.pop("vkd", False):
            options = cma.restricted_gaussian_sampler.GaussVkDSampler.extend_cma_options(options)
        cma.fmin2(task.fun, task.point, task.sigma0, options, restarts=9, **arguments)

    return run


def pycma_constrained(task: Task, settings: Settings) -> None:
    """PyCMA with its augmented Lagrangian. It has no restarts of its own, so it gets IPOP's: twice the population."""
    import cma

    popsize = 4 + int(3 * np.log(task.x0.size))
    for attempt in range(1000):
        options = {
            "maxfevals": task.fun.left,
            "seed": (task.seed + attempt) % 2**31 or 1,
            "verbose": -9,
            "popsize": popsize,
            **settings,
        }
        cma.fmin_con2(task.fun, task.point(), task.sigma0, constraints=task.fun.constraints, options=options)
        popsize *= 2


def cmaes(task: Task, settings: Settings) -> None:
    """cmaes with IPOP restarts, as in the example of its README."""
    from cmaes import CMA

    popsize = None
    for attempt in range(1000):
        mean = task.point()
        seed = (task.seed + attempt) % 2**31
        optimizer = CMA(mean=mean, sigma=task.sigma0, population_size=popsize, seed=seed, **settings)
        while not optimizer.should_stop():
            X = [optimizer.ask() for _ in range(optimizer.population_size)]
            optimizer.tell([(x, task.fun(x)) for x in X])
        popsize = 2 * optimizer.population_size


def random_search(task: Task, settings: Settings) -> None:
    """Uniform points in [-5, 5]^n. A floor for the other methods."""
    rng = np.random.default_rng(task.seed)
    while True:
        task.fun(rng.uniform(-5, 5, task.x0.size))


METHODS: dict[str, Callable[[Task, Settings], None]] = {
    "cones": cones,
    "pycma": pycma(),
    "pycma-bipop": pycma(bipop=True),
    "pycma-diagonal": pycma(options={"CMA_diagonal": True}),
    "pycma-constrained": pycma_constrained,
    "vkd": pycma(vkd=True),
    "cmaes": cmaes,
    "lmcma": pypop7("lmcma", "LMCMA"),
    "lmmaes": pypop7("lmmaes", "LMMAES"),
    "mmes": pypop7("mmes", "MMES"),
    "crfmnes": crfmnes,
    "random": random_search,
}

PACKAGES = {
    "cones": ("cones",),
    "pycma": ("cma",),
    "pycma-bipop": ("cma",),
    "pycma-diagonal": ("cma",),
    "pycma-constrained": ("cma",),
    "vkd": ("cma",),
    "cmaes": ("cmaes",),
    "lmcma": ("pypop7",),
    "lmmaes": ("pypop7",),
    "mmes": ("pypop7",),
    "crfmnes": ("crfmnes",),
    "random": (),
}
