"""Every component of the registry, with settings to make it from.

Each table has one entry per name; `test_components.py` fails where the registry has a name that a table lacks.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cones
from cones import Step, storage
from cones.component import Component, component_from, components
from cones.errors import MissingExtraError

# The settings to test a component with: by kind and name, one or several sets.
SETTINGS: dict[str, dict[str, list[dict[str, Any]]]] = {
    "design": {"independent": [{}], "antithetic": [{}], "auto": [{}]},
    "estimator": {
        "score_function": [{}],
        "asebo": [{}, {"warm_up": 2, "archive": 5, "share": 0.8}],
        "best_directions": [{}, {"share": 0.75}],
        "clipped": [{}, {"epochs": 1, "clip": 0.5}],
        "orthogonal": [{}, {"block": 3}],
        "past_directions": [{}, {"directions": 2}],
        "rbo": [{}, {"fit": "absolute"}, {"reuse": 2, "ridge": 0.5}],
        "recombination": [{}],
        "quadratic": [{"keep": 0.65}, {"keep": 0.7, "ridge": 0.1}],
        "elite": [{}],
        "factors": [{}, {"gaussian": "score_function", "discrete": "score_function"}],
    },
    "step": {
        "plain": [{}],
        "ars": [{}, {"step_size": 0.3}],
        "tr_cma": [{}, {"mean": 0.2, "scale": 0.5, "shape": 5.0}],
        "more": [{}, {"radius": 0.3, "rate": 0.9, "least_entropy": -1000.0}],
        "natural": [{}],
        "convex": [
            {"radius": 0.7},
            {"radius": 30.0, "solver": "dual", "divergence": "kl"},
            {"radius": 0.7, "divergence": "reverse_kl", "chart": "natural_parameters"},
        ],
        "balls": [{}, {"mean": "path_length", "shape": "path_length", "divergence": "chi2"}],
        "evolution_path": [{}, {"rate": 2.0, "threshold": 0.7}],
        "low_rank": [{}, {"threshold": 0.0, "rate": 2.0}],
        "family_path": [{}, {"rate": 0.3, "threshold": 0.0, "memory": 0.0}],
        "factors": [{}, {"gaussian": "balls", "discrete": "balls"}],
    },
    "divergence": {
        "kl": [{}],
        "reverse_kl": [{}],
        "chi2": [{}],
        "hellinger": [{}],
        "renyi": [{"alpha": 0.3}, {"alpha": 1.0}, {"alpha": 3.0}],
    },
    "solver": {"dual": [{}], "cvxpy": [{}], "clarabel": [{}], "scs": [{}], "mosek": [{}]},
    "radius": {
        "fixed": [{"value": 0.5}],
        "path_length": [{}, {"start_radius": 0.05, "gain": 0.5, "largest": 1.0}],
        "signal_ratio": [{}],
        "smoothing": [{}],
    },
    "optimizer": {
        "adam": [{}, {"learning_rate": 0.2, "variance_learning_rate": 0.05, "beta1": 0.8}],
        "sgd": [{}, {"learning_rate": 0.3, "variance_learning_rate": 0.1, "momentum": 0.9}],
        "direct": [{}],
    },
    "restarts": {
        "growing": [{}, {"limit": 3}],
        "bipop": [{}, {"limit": 4, "share": 0.25}],
        "refining": [{}, {"limit": 3, "factor": 0.5}],
    },
    "criterion": {
        "ftarget": [{"limit": -1.5}],
        "xtol": [{"limit": 1e-3}],
        "ftol": [{"limit": 0.1}],
        "maxfev": [{"limit": 1000}, {"limit": 1000, "reserve": 10}],
        "maxiter": [{"limit": 31}],
        "maxtime": [{"limit": 2.5}],
        "stagnation": [{"limit": 10}, {"limit": 120, "popsize": 8}],
        "plateau": [{"limit": 10}, {"limit": 31, "share": 0.2}],
    },
}
# Beliefs are made from a mean and deviations, not from settings; `helpers.random_belief` makes others.
GAUSSIANS = ("diagonal", "full", "low_rank")
FAMILIES = ("bernoulli", "categorical", "poisson", "product")
BELIEFS = (*GAUSSIANS, *FAMILIES)
# Components that are for exponential families alone; `test_families.py` has their suite.
FOR_FAMILIES = {"estimator": ("elite",), "step": ("family_path",)}

INTERFACES: dict[str, type[Component]] = {
    interface.kind: interface for interface in Component.__subclasses__() if interface.__module__.startswith("cones.")
}


def variants(kind: str) -> Any:
    """A parameter of a test: every component of a kind, with every set of settings."""
    made = [
        pytest.param(name, settings, id=",".join([name, *(f"{key}={value}" for key, value in settings.items())]))
        for name in components(kind)
        if name not in FOR_FAMILIES.get(kind, ())
        for settings in SETTINGS[kind].get(name, [])
    ]
    return pytest.mark.parametrize(("name", "settings"), made)


def make(kind: str, name: str, settings: dict[str, Any]) -> Any:
    """The component; the test is skipped if a package or a licence that it needs is missing."""
    try:
        return component_from(kind, {"name": name, **settings})
    except MissingExtraError as error:
        pytest.skip(str(error))


def through_a_file(value: Any, folder: Any) -> Any:
    """What a file of the value gives back."""
    path = folder / "value.npz"
    storage.write(path, "test", 1, {"value": value})
    return storage.read(path, "test", 1, ["value"])["value"]


def parts_of(value: Any) -> dict[Any, Any] | None:
    """What a value consists of, by name; None if it has no parts."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (list, tuple)):
        return dict(enumerate(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    names = [*getattr(value, "__dict__", ()), *slots] if not isinstance(value, (type, np.ndarray, Enum)) else []
    return {name: getattr(value, name) for name in names} or None


def arrays_of(value: Any) -> Iterator[np.ndarray]:
    """All arrays inside a value."""
    if isinstance(value, np.ndarray):
        yield value
        return
    for part in (parts_of(value) or {}).values():
        yield from arrays_of(part)


def assert_same(one: Any, other: Any) -> None:
    """Equal to the last bit, arrays and all."""
    assert type(one) is type(other)
    parts, others = parts_of(one), parts_of(other)
    if isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    elif parts is not None or others is not None:
        assert list(parts or ()) == list(others or ())
        for name, part in (parts or {}).items():
            assert_same(part, (others or {})[name])
    elif isinstance(one, float) and math.isnan(one):
        assert math.isnan(other)
    else:
        assert one == other


def assert_same_step(one: Step, other: Step) -> None:
    assert_same(one.shift, other.shift)
    assert_same(one.log_ratio, other.log_ratio)
    assert one.status is other.status
    assert_same(dict(one.columns), dict(other.columns))


def assert_same_runs(one: Any, other: Any, path: Path) -> None:
    """Six iterations on a sphere end alike, although the other run goes on from a file after three."""
    for iteration in range(6):
        if iteration == 3:
            other.save(path)
            other = cones.load(path)
        for es in (one, other):
            X = es.ask()
            es.tell(X, (np.asarray(X) ** 2).sum(axis=1))
    np.testing.assert_array_equal(one.state.belief.mean, other.state.belief.mean)
    assert_same(one.state.components, other.state.components)
