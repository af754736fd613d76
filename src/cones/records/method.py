"""A method with its settings, as experiments and training runs declare it, and the names of runs."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cones.checks import check_integer, check_one_of, check_positive
from cones.component import is_own, table_of
from cones.errors import InputError
from cones.fields import check_fields
from cones.methods import METHODS, settings_of_method
from cones.progress.limits import LIMITS
from cones.records.keys import Keys
from cones.steps import Balls
from cones.strategy import Strategy
from cones.types import Vector

__all__ = ["LABELS", "RATES", "MethodSpec", "file_name", "method_from", "seeds_from"]

LABELS = {
    "es": "ES", "nes": "NES", "cones": "CoNES", "ars": "ARS", "tres": "TR-ES", "more": "MORE", "trcma": "TR-CMA",
    "cma": "CMA", "sepcma": "SepCMA", "openes": "OpenES", "pgpe": "PGPE",
}  # fmt: skip
# The optimizer and its settings, which stand beside the method's.
RATES = ("optimizer", "learning_rate", "variance_learning_rate", "momentum")
SIGMA = "sigma"  # of the start, instead of the experiment's, the problem's or the task's
# What an experiment gives in other ways: start, seeds and budget; and it has no constraints.
ELSEWHERE = ("bounds", "catol", "rng", "maxfev", "maxiter")


def settings_in_file(method: str) -> tuple[str, ...]:
    """The settings of a method that an experiment file may give."""
    names = [name for name in (*settings_of_method(method), *LIMITS) if name not in ELSEWHERE]
    return tuple(dict.fromkeys([SIGMA, *names, *(RATES if "optimizer" in names else ())]))


@dataclass(frozen=True)
class MethodSpec:
    """A method with its settings, its seeds and its budget."""

    label: str
    method: str
    seeds: tuple[int, ...]
    maxfev: int | None  # None on tasks, whose budget is in timesteps
    settings: dict[str, Any] = field(default_factory=dict)
    note: str = ""

    @staticmethod
    def from_specification(data: Mapping[str, Any]) -> MethodSpec:
        parts = {**data, "seeds": seeds_from("seeds", data["seeds"])}
        check_fields(MethodSpec, parts)
        check_one_of("method", parts["method"], tuple(METHODS))
        return MethodSpec(**parts)

    def with_budget(self, maxfev: int | None) -> MethodSpec:
        """The method with another budget, if one is given."""
        return self if maxfev is None else replace(self, maxfev=maxfev)

    def own_components(self) -> list[str]:
        """The components of the user's own that the settings name."""
        return [word for value in self.settings.values() for word in _words(value) if is_own(word)]

    def strategy(
        self,
        start: Vector,
        sigma: float | Vector,
        seed: int,
        all_settings: Mapping[str, Any] | None = None,
        **limits: Any,
    ) -> Strategy:
        """The strategy with the method's settings, or with `all_settings` instead of them."""
        chosen = self.settings if all_settings is None else all_settings
        settings = {name: value for name, value in chosen.items() if name not in (SIGMA, *RATES)}
        rates = {name: value for name, value in chosen.items() if name in RATES[1:]}
        if rates or "optimizer" in chosen:
            optimizer = chosen.get("optimizer", "adam")
            settings["optimizer"] = {**(optimizer if isinstance(optimizer, dict) else {"name": optimizer}), **rates}
        # A run spends its budget; tolerances end it only where the experiment sets them, or restarts need them.
        if not settings.get("restarts"):
            settings = {"xtol": None, "ftol": None, "stagnation": None, **settings}
        sigma = chosen.get(SIGMA, sigma)
        return METHODS[self.method](start, sigma, rng=seed, maxfev=self.maxfev, **limits, **settings)


def method_from(table: Any, place: str, seeds: tuple[int, ...], maxfev: int | None) -> MethodSpec:
    """The method of a TOML table or of keyword arguments. Every key is checked."""
    known = tuple(table) if isinstance(table, Mapping) else ()
    name = check_one_of(f"{place}method", Keys(table, place, known).need("method"), tuple(METHODS))
    budget = () if maxfev is None else ("maxfev",)
    keys = Keys(table, place, ("method", "label", "seeds", *budget, "note", *settings_in_file(name)))
    for key, value in table.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{place}{key}: expected a finite number, got {value}; leave the key out to switch it off")
    if SIGMA in table:
        check_positive(f"{place}{SIGMA}", table[SIGMA])
    return MethodSpec(
        label=str(keys.get("label", LABELS[name])),
        method=name,
        seeds=seeds_from(f"{place}seeds", keys.get("seeds", list(seeds))),
        maxfev=None if maxfev is None else check_integer(f"{place}maxfev", keys.get("maxfev", maxfev), 1),
        settings=_written({key: table[key] for key in settings_in_file(name) if key in table}, place),
        note=str(keys.get("note", "")),
    )


def _written(settings: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Settings as a record holds them. A component, which may be given as an object, becomes its table."""
    plain = {key: value.item() if isinstance(value, np.generic) else value for key, value in settings.items()}
    written = {key: table_of(value) for key, value in plain.items()}
    if isinstance(settings.get("radius"), Balls):
        if "step" in written:
            raise InputError(f"{place}step: expected neither radius nor solver nor divergence nor chart beside it")
        written["step"] = written.pop("radius")
    for key, value in written.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            raise InputError(
                f"{place}{key}: expected something that a record can hold, such as a number, a text or a component "
                f"of `cones`, got {value!r:.80}"
            ) from None
    return written


def _words(value: Any) -> list[str]:
    """The names in a setting, however it is written."""
    if isinstance(value, Mapping):
        return [word for part in value.values() for word in _words(part)]
    return [part.rpartition("=")[2] for part in value.split(",")] if isinstance(value, str) else []


def seeds_from(name: str, value: Any) -> tuple[int, ...]:
    """Seeds from a list of them, or from their number."""
    if isinstance(value, list):
        seeds = tuple(check_integer(name, seed, 0) for seed in value)
        if not seeds or len(set(seeds)) < len(seeds):
            raise InputError(f"{name}: expected different seeds, at least one, got {value}")
        return seeds
    return tuple(range(check_integer(name, value, 1)))


def file_name(what: str, method: str, seed: int) -> str:
    """The name of a run's files."""
    return re.sub(r"[^a-z0-9.+]+", "-", f"{what} {method} seed {seed}".lower()).strip("-")
