from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cones
from cones import InputError, MissingExtraError
from cones.baselines import PGPE, OpenES

MEAN, DEVIATION = np.linspace(1.0, 2.0, 4), 0.5
ADAM = {"optimizer": "adam", "learning_rate": 0.05}


def ellipsoid(X: np.ndarray) -> np.ndarray:
    return ((X - 0.25) ** 2 * [1.0, 2.0, 4.0, 8.0]).sum(axis=1)


def advance(es: cones.Strategy, iterations: int) -> cones.Strategy:
    for _ in range(iterations):
        X = es.ask()
        es.tell(X, ellipsoid(X))
    return es


def plain_run(method: str, seed: int, iterations: int) -> Any:
    """The state of the package's algorithm after its own loop."""
    jax, optax = pytest.importorskip("jax"), pytest.importorskip("optax")
    algorithms = pytest.importorskip("evosax.algorithms")
    mean = MEAN.astype(np.float32)
    if method == "openes":
        optimizer, schedule = optax.adam(0.05), optax.constant_schedule(DEVIATION)
        algorithm = algorithms.Open_ES(20, mean, optimizer=optimizer, std_schedule=schedule)
        params = algorithm.default_params
    else:
        algorithm = algorithms.PGPE(20, mean)
        params = algorithm.default_params.replace(std_init=DEVIATION)
    key, first = jax.random.split(jax.random.key(seed))
    state = algorithm.init(first, mean, params)
    for _ in range(iterations):
        key, draw = jax.random.split(key)
        X, state = algorithm.ask(draw, state, params)
        state, _ = algorithm.tell(key, X, ellipsoid(np.asarray(X, np.float64)), state, params)
    return state


@pytest.mark.parametrize(("method", "options"), [("openes", ADAM), ("pgpe", None)])
def test_it_is_the_package_itself_by_seed_and_checkpoint(
    method: str, options: dict[str, Any] | None, tmp_path: Path
) -> None:
    pytest.importorskip("evosax")
    make = {"openes": OpenES, "pgpe": PGPE}[method]
    es = advance(make(MEAN, DEVIATION, popsize=20, options=options, rng=7), 12)
    state = plain_run(method, 7, 12)
    np.testing.assert_allclose(es.state.belief.mean, state.mean, rtol=1e-5)
    np.testing.assert_allclose(es.state.belief.deviation, np.broadcast_to(state.std, 4), rtol=1e-5)
    assert es.history["mean_loss"][-1] < 0.9 * es.history["mean_loss"][0]

    es.save(tmp_path / "run.ckpt")
    again = cones.load(tmp_path / "run.ckpt")
    np.testing.assert_array_equal(again.ask(), es.ask())
    assert not np.array_equal(make(MEAN, DEVIATION, popsize=20, options=options, rng=8).ask(), es.ask())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"popsize": 7}, "popsize: expected an even number, got 7"),
        ({"options": 3}, "options: expected a mapping"),
        ({"options": {"learning_rate": 0.1}}, "options: expected an optimizer of 'sgd', 'adam', 'clipup', got None"),
        ({"options": {"optimizer": "adam", "learning_rate": "high"}}, "options: expected a number for 'learning_rate'"),
        ({"options": {"optimizer": "adam", "rate": 0.1}}, "options: .*rate"),
    ],
)
def test_bad_input_is_named(settings: dict[str, Any], message: str) -> None:
    pytest.importorskip("evosax")
    with pytest.raises(InputError, match=message):
        OpenES(MEAN, **settings)


def test_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"method: PGPE needs the package .*pip install .*'evosax>="):
        PGPE([0.0, 0.0])
