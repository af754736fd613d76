"""A method of an experiment with its settings, and the names of runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cones.checks import check_one_of
from cones.errors import InputError
from cones.methods import METHODS
from cones.optimizers import SGD, Adam, Direct
from cones.strategy import Strategy
from cones.types import Vector

__all__ = ["LABELS", "RATES", "SETTINGS", "MethodSpec", "file_name"]

LABELS = {"es": "ES", "nes": "NES", "cones": "CoNES", "cma": "CMA", "sepcma": "SepCMA"}
RATES = ("optimizer", "learning_rate", "variance_learning_rate", "momentum")
OF_ALL = ("popsize", "xtol", "ftol", "stagnation", "ftarget", "maxtime")
OF_PIPELINE = ("belief", "antithetic", "dtype", "noise_table", "chunked", "shaping", "restarts", *RATES)
SETTINGS = {
    "es": (*OF_ALL, *OF_PIPELINE),
    "nes": (*OF_ALL, *OF_PIPELINE),
    "cones": (*OF_ALL, *OF_PIPELINE, "radius", "solver"),
    "cma": (*OF_ALL, "diagonal", "options"),
    "sepcma": OF_ALL,
}


@dataclass(frozen=True)
class MethodSpec:
    """A method with its settings, its seeds and its budget."""

    label: str
    method: str
    seeds: tuple[int, ...]
    maxfev: int | None  # None on tasks, whose budget is in timesteps
    settings: dict[str, Any] = field(default_factory=dict)
    note: str = ""

    def strategy(
        self, start: Vector, sigma: float, seed: int, all_settings: Mapping[str, Any] | None = None, **limits: Any
    ) -> Strategy:
        """The strategy with the method's settings, or with `all_settings` instead of them."""
        chosen = self.settings if all_settings is None else all_settings
        settings = {name: value for name, value in chosen.items() if name not in RATES}
        rates = {name: value for name, value in chosen.items() if name in RATES}
        if rates:
            kind = check_one_of("optimizer", rates.pop("optimizer", "adam"), ("adam", "sgd", "direct"))
            if kind != "sgd" and "momentum" in rates:
                raise InputError('momentum: expected with optimizer = "sgd" only')
            if kind == "direct" and rates:
                raise InputError('optimizer: "direct" has no learning rates')
            settings["optimizer"] = {"adam": Adam, "sgd": SGD, "direct": Direct}[kind](**rates)
        # An experiment runs for its budget; tolerances end it only where it asks for them.
        if "restarts" not in settings:  # which needs them
            settings = {"xtol": None, "ftol": None, "stagnation": None, **settings}
        return METHODS[self.method](start, sigma, rng=seed, maxfev=self.maxfev, **limits, **settings)


def file_name(what: str, method: str, seed: int) -> str:
    """The name of a run's files."""
    return re.sub(r"[^a-z0-9.+]+", "-", f"{what} {method} seed {seed}".lower()).strip("-")
