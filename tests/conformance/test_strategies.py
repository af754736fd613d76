"""What every method must do by ask and tell: the protocol, checkpoints, copies, failures, bounds, stops."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conformance.variants import assert_same

import cones
from cones import InputError, StateError, Strategy
from cones.methods import METHODS, settings_of_method

# The settings to test a method with, besides its defaults.
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "es": [{}, {"belief": "full", "antithetic": False, "popsize": 9}],
    "nes": [{}, {"belief": "full", "optimizer": "sgd,momentum=0.5", "shaping": "normal_scores"}],
    "cones": [
        {},
        {"radius": "paper"},
        {"radius": 1.0, "belief": "full", "popsize": 10},
        {"estimator": "asebo,warm_up=2"},
        {"restarts": 2, "ftol": 1e-3},
        {"restarts": "auto", "ftol": 1e-3, "noisy": True},
        {"belief": "diagonal", "dtype": "float32"},
        {"chunked": True},
    ],
    "ars": [{}, {"estimator": "best_directions,share=0.5", "step": "ars,step_size=0.1", "popsize": 20}],
    "tres": [{}, {"estimator": "clipped,epochs=3", "optimizer": "adam,learning_rate=0.05", "chunked": True}],
    "more": [{}, {"step": "more,radius=0.7,rate=0.95", "popsize": 20}],
    "trcma": [{}, {"step": "tr_cma,shape=4", "belief": "diagonal"}],
    "cma": [{}, {"diagonal": True}],
    "sepcma": [{}],
    "openes": [],  # JAX compiles every strategy for seconds: tests/baselines/test_evosax.py
    "pgpe": [],
}
EVERY = [
    pytest.param(method, settings, id=",".join([method, *(f"{key}={value}" for key, value in settings.items())]))
    for method in METHODS
    for settings in SETTINGS.get(method, [])
]
every_strategy = pytest.mark.parametrize(("method", "settings"), EVERY)
DIM = 6


def test_every_method_has_settings_here() -> None:
    assert set(SETTINGS) == set(METHODS)


def begun(method: str, settings: dict[str, Any], **more: Any) -> Strategy:
    return METHODS[method](np.linspace(1.0, 2.0, DIM), 0.5, **{"rng": 5, "maxiter": 1000, **settings, **more})


def losses_of(X: Any) -> np.ndarray:
    """Ridged, and NaN in a corner."""
    X = np.asarray(X, dtype=float)
    values = ((X - 0.5) ** 2).sum(axis=1) + 3.0 * np.abs(X[:, 0] - X[:, 1])
    return np.where(X[:, 2] > 2.0, np.nan, values)


def advance(es: Strategy, iterations: int) -> Strategy:
    for _ in range(iterations):
        X = es.ask()
        es.tell(X, losses_of(X))
    return es


def assert_same_run(one: Strategy, other: Strategy) -> None:
    assert_same(one.state.belief.state(), other.state.belief.state())
    assert_same(one.state.components, other.state.components)
    assert (one.state.iteration, one.state.evaluations, one.state.best_fun) == (
        other.state.iteration, other.state.evaluations, other.state.best_fun
    )  # fmt: skip
    np.testing.assert_array_equal(one.state.best_x, other.state.best_x)
    assert one.history.names == other.history.names
    for name in one.history.names:
        if name != "seconds":
            np.testing.assert_array_equal(one.history[name], other.history[name])
    np.testing.assert_array_equal(np.asarray(one.ask()), np.asarray(other.ask()))
    assert one.stop() == other.stop()


@every_strategy
def test_ask_and_tell(method: str, settings: dict[str, Any]) -> None:
    es = begun(method, settings)
    best, best_x = math.inf, None
    for iteration in range(8):
        X = es.ask()
        assert es.ask() is X
        assert X.shape == (es.popsize, DIM)
        rows, values = np.array(X), losses_of(X)
        if np.nanmin(values) < best:
            best, best_x = float(np.nanmin(values)), rows[np.nanargmin(values)]
        assert es.state.iteration == iteration
        es.tell(X, values)
        assert es.state.best_fun == best
        np.testing.assert_array_equal(es.state.best_x, best_x)
        assert es.history.latest("failures") == np.isnan(values).sum()
    assert len(es.history) == 8
    result = es.result
    assert (result.nit, result.fun, result.nfev) == (8, best, es.history["evaluations"][-1])
    np.testing.assert_array_equal(result.x, best_x)


@every_strategy
def test_it_descends(method: str, settings: dict[str, Any]) -> None:
    mean_loss = advance(begun(method, settings), 60).history["mean_loss"]
    assert mean_loss[-5:].mean() < 0.5 * mean_loss[:5].mean()


@every_strategy
@pytest.mark.parametrize("when", [0, 1, 7, 14])
def test_a_checkpoint_goes_on_bit_for_bit(method: str, settings: dict[str, Any], when: int, tmp_path: Path) -> None:
    straight, broken = advance(begun(method, settings), 20), advance(begun(method, settings), when)
    broken.ask()  # asked and not told: it is asked again
    broken.save(tmp_path / "run.ckpt")
    loaded = advance(cones.load(tmp_path / "run.ckpt"), 20 - when)
    assert_same_run(loaded, straight)
    assert loaded.criteria == straight.criteria
    assert repr(loaded) == repr(straight)
    assert type(loaded) is type(straight)


@every_strategy
def test_saving_changes_nothing_and_writes_the_same_again(
    method: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    es, straight = begun(method, settings), advance(begun(method, settings), 6)
    for _ in range(6):
        es.save(tmp_path / "run.ckpt")
        advance(es, 1)
    assert_same_run(es, straight)
    es.save(tmp_path / "one.ckpt")
    cones.load(tmp_path / "one.ckpt").save(tmp_path / "two.ckpt")
    with np.load(tmp_path / "one.ckpt") as one, np.load(tmp_path / "two.ckpt") as two:
        assert bytes(one["header"]) == bytes(two["header"])
        for name in one.files:
            np.testing.assert_array_equal(one[name], two[name])


@every_strategy
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda es: pickle.loads(pickle.dumps(es))])
def test_a_copy_goes_on_by_itself(method: str, settings: dict[str, Any], copied) -> None:
    straight, es = advance(begun(method, settings), 9), advance(begun(method, settings), 4)
    X = es.ask()
    other = advance(copied(es), 5)
    assert_same_run(other, straight)
    es.tell(X, losses_of(X))
    assert_same_run(advance(es, 4), straight)


@every_strategy
def test_nan_acts_as_the_worst_loss(method: str, settings: dict[str, Any]) -> None:
    one, other = begun(method, settings), begun(method, settings)
    for _ in range(6):
        X = one.ask()
        values = losses_of(X)
        values[3] = np.nan
        one.tell(X, values)
        other.tell(other.ask(), np.where(np.isnan(values), np.inf, values))
        np.testing.assert_array_equal(one.state.belief.mean, other.state.belief.mean)
    assert one.history["failures"].sum() >= 6
    assert other.history["failures"].sum() == 0


@every_strategy
def test_a_population_without_a_finite_loss_moves_nothing(method: str, settings: dict[str, Any]) -> None:
    es = advance(begun(method, settings), 3)
    belief, best = es.state.belief, es.state.best_fun
    with pytest.warns(RuntimeWarning, match="no loss of the population is finite"):
        es.tell(es.ask(), np.full(es.popsize, np.inf))
    for failed in range(1, 9):
        assert es.stop() is None, failed
        es.tell(es.ask(), np.where(np.arange(es.popsize) % (1 + failed), np.nan, np.inf))
        assert_same(es.state.belief.state(), belief.state())
    assert es.state.best_fun == best
    twin = copy.deepcopy(es)
    if not settings.get("restarts"):
        es.tell(es.ask(), np.full(es.popsize, np.nan))
        assert es.stop().name == "no_finite_loss"
    advance(twin, 1)
    assert twin.stop() is None
    assert not np.array_equal(twin.state.belief.mean, belief.mean)


@every_strategy
def test_a_first_population_without_a_finite_loss_ends_the_run(method: str, settings: dict[str, Any]) -> None:
    es = begun(method, settings)
    es.tell(es.ask(), np.full(es.popsize, np.inf))
    assert es.stop().name == "no_finite_loss"
    es = begun(method, settings)
    es.tell(es.ask(), np.full(es.popsize, np.nan))
    assert es.stop().name == "no_finite_loss"
    assert np.isnan(es.result.fun)
    np.testing.assert_allclose(es.result.x, np.linspace(1.0, 2.0, DIM), rtol=1e-6)


@every_strategy
def test_losses_of_any_size_do_no_harm(method: str, settings: dict[str, Any]) -> None:
    es, rng = begun(method, settings), np.random.default_rng(0)
    for scale in (1e-300, 1e300, 1.0):
        es.tell(es.ask(), scale * rng.standard_normal(es.popsize))
        assert np.isfinite(es.state.belief.mean).all()
    with pytest.warns(RuntimeWarning, match="no loss of the population is finite"):
        es.tell(es.ask(), np.full(es.popsize, np.inf))
    es.tell(es.ask(), np.full(es.popsize, 7.0))
    assert np.isfinite(np.asarray(es.ask())).all()


@every_strategy
def test_what_was_not_asked_cannot_be_told(method: str, settings: dict[str, Any]) -> None:
    es = begun(method, settings)
    with pytest.raises(StateError, match="tell"):
        es.tell(np.zeros((es.popsize, DIM)), np.zeros(es.popsize))
    X, state = es.ask(), es.state
    with pytest.raises(InputError, match="values: expected"):
        es.tell(X, np.zeros(es.popsize + 1))
    with pytest.raises(InputError, match="X: expected"):
        es.tell(np.asarray(X) + 1.0, np.zeros(es.popsize))
    assert es.state is state
    es.tell(X, losses_of(X))
    with pytest.raises(StateError, match="tell"):
        es.tell(X, losses_of(X))


@every_strategy
def test_candidates_stay_in_the_box(method: str, settings: dict[str, Any]) -> None:
    es = begun(method, settings, bounds=[(0.75, 2.0)] * DIM)
    for _ in range(10):
        X = np.asarray(es.ask())
        assert (X >= 0.75).all()
        assert (X <= 2.0).all()
        es.tell(es.ask(), losses_of(X))
    assert (es.result.x >= 0.75).all()
    assert (es.result.mean >= 0.75).all()


def rows_of(X: Any) -> np.ndarray:
    """A ball, a half space, and an equality as two rows."""
    X = np.asarray(X, dtype=float)
    half, equal = 1.0 - X[:, 0] - X[:, 1], X[:, 2] - X[:, 3]
    return np.stack([(X**2).sum(axis=1) - 4.0, half, equal, -equal], axis=1)


@every_strategy
def test_constraints(method: str, settings: dict[str, Any], tmp_path: Path) -> None:
    catol = 0.05
    es, seen = begun(method, settings, bounds=[(-1.0, 1.875)] * 5 + [(None, None)]), []
    es.state = replace(es.state, catol=catol)
    for _ in range(6):
        X, before = es.ask(), es.state
        with pytest.raises(InputError, match="constraints: expected"):
            es.tell(X, losses_of(X), constraints=rows_of(X)[1:])
        losses, rows = losses_of(X), rows_of(X)
        worst = np.maximum(rows, 0.0).max(axis=1)
        excess = np.where(worst > catol, worst, 0.0)
        told = zip(excess, losses, np.array(X), strict=True)
        seen += [(float(v), float(loss), tuple(x)) for v, loss, x in told if not np.isnan(loss)]
        assert es.state is before
        assert (np.array(X)[:, :5] <= 1.875).all()
        es.tell(X, losses, constraints=rows)
        assert (es.result.fun, tuple(es.result.x)) == min(seen)[1:]
        assert es.result.maxcv == pytest.approx(max(0.0, rows_of(es.result.x[None, :]).max()))
    assert es.history.latest("violation") == es.result.maxcv
    with pytest.raises(InputError, match="constraints: expected 4 numbers per candidate, got none"):
        es.tell(es.ask(), losses)
    es.save(tmp_path / "run.ckpt")
    again = cones.load(tmp_path / "run.ckpt")
    for one in (es, again):
        X = one.ask()
        one.tell(X, losses_of(X), constraints=rows_of(X))
    assert_same_run(es, again)
    assert_same(es.state.lagrangian, again.state.lagrangian)


@every_strategy
def test_the_seed_decides_everything(method: str, settings: dict[str, Any]) -> None:
    one, same, other = (advance(begun(method, settings, rng=rng), 5) for rng in (3, 3, 4))
    assert_same_run(one, same)
    assert not np.array_equal(one.state.belief.mean, other.state.belief.mean)


@every_strategy
def test_criteria_end_the_run(method: str, settings: dict[str, Any]) -> None:
    assert advance(begun(method, settings, maxiter=3), 3).stop().name == "maxiter"
    es = begun(method, settings, maxfev=10**6, ftarget=0.5)
    while es.stop() is None:
        advance(es, 1)
    assert es.stop().name == "ftarget"
    assert es.result.success
    assert es.state.best_fun <= 0.5


@every_strategy
def test_minimize_and_resume_run_it(method: str, settings: dict[str, Any], tmp_path: Path) -> None:
    def fun(X: np.ndarray) -> np.ndarray:
        return losses_of(X)

    x0 = np.linspace(1.0, 2.0, DIM)
    common = {"method": method, "sigma0": 0.5, "vectorized": True, "rng": 5, **settings}
    straight = cones.minimize(fun, x0, maxiter=12, checkpoint=tmp_path / "straight.ckpt", **common)
    cones.minimize(fun, x0, maxiter=12, checkpoint=tmp_path / "run.ckpt", callback=_stops_at(5), **common)
    resumed = cones.resume(tmp_path / "run.ckpt", fun)
    assert resumed.nit == straight.nit == 12
    np.testing.assert_array_equal(resumed.mean, straight.mean)
    np.testing.assert_array_equal(resumed.x, straight.x)
    np.testing.assert_array_equal(resumed.history["mean_loss"], straight.history["mean_loss"])


def _stops_at(iteration: int):
    def callback(intermediate_result) -> None:
        if intermediate_result.nit == iteration:
            raise StopIteration

    return callback


@pytest.mark.parametrize("method", METHODS)
def test_settings_are_in_the_signature_and_typos_are_answered(method: str) -> None:
    names = settings_of_method(method)
    assert {"popsize", "bounds", "rng"} <= set(names)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'popsizes'; did you mean popsize\?"):
        METHODS[method]([1.0, 2.0], popsizes=10)
    with pytest.raises(InputError, match="popsize: expected"):
        METHODS[method]([1.0, 2.0], popsize=1)


@every_strategy
def test_single_candidates_survive_a_checkpoint_or_are_refused(
    method: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    straight, saved = (begun(method, settings) for _ in range(2))
    if method in ("cma", "sepcma") or settings.get("chunked"):
        with pytest.raises(InputError, match="count: expected none"):
            straight.ask(1)
        return
    size = straight.popsize
    for es in (straight, saved):
        for _ in range(2 * size - 3):
            X = es.ask(2)  # the second of each is out when the run is saved
            es.tell(X[:1], losses_of(X[:1]))
    saved.save(tmp_path / "run.ckpt")
    loaded: Any = cones.load(tmp_path / "run.ckpt")
    out = loaded.ask(2 * size - 3)
    np.testing.assert_array_equal(out, straight.arrivals.candidates(list(straight.arrivals.out)))  # type: ignore[attr-defined]
    for es in (straight, loaded):
        for row in out[::-1, None]:
            es.tell(row, losses_of(row))
    assert straight.state.iteration >= 2
    assert straight.state.evaluations == 4 * size - 6
    assert_same_run(straight, loaded)
