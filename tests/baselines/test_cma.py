from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cones
from cones import InputError, MissingExtraError
from cones.archive import read_archive, write_archive
from cones.baselines.external import import_package

pytest.importorskip("cma")


def ellipsoid(X: np.ndarray) -> np.ndarray:
    return ((X - 1.0) ** 2 * 10.0 ** np.arange(X.shape[1])).sum(axis=1)


def advance(es: cones.Strategy, iterations: int) -> None:
    for _ in range(iterations):
        X = es.ask()
        es.tell(X, ellipsoid(X))


@pytest.mark.parametrize("settings", [{"diagonal": True}, {"options": {"CMA_diagonal": True}}])
def test_one_coordinate_is_its_own_diagonal(settings: dict[str, Any]) -> None:
    given = {"method": "cma", "sigma0": 0.1, "vectorized": True, "rng": 0, "maxiter": 5}
    result = cones.minimize(ellipsoid, np.zeros(1), **settings, **given)
    np.testing.assert_array_equal(result.mean, cones.minimize(ellipsoid, np.zeros(1), **given).mean)


@pytest.mark.parametrize("diagonal", [False, True])
def test_minimises(diagonal: bool) -> None:
    result = cones.minimize(
        ellipsoid, np.zeros(5), method="cma", diagonal=diagonal, vectorized=True, rng=0, ftarget=1e-9
    )
    assert result.success
    np.testing.assert_allclose(result.x, 1.0, atol=1e-3)
    assert np.isnan(result.history["kl"]).all()
    assert (result.history["step"] > 0.0).all()


def test_is_pycma_itself() -> None:
    """The same candidates as PyCMA by hand, with the same normals."""
    es = cones.CMA(np.zeros(4), 0.5, rng=7)
    generator = np.random.Generator(np.random.SFC64(7))
    options = {"verbose": -9, "seed": np.nan, "randn": lambda *shape: generator.standard_normal(shape)}
    plain = import_package("cma", "CMA").CMAEvolutionStrategy(np.zeros(4), 0.5, {**options, "popsize": 8})
    assert es.popsize == 8
    for _ in range(20):
        X, Y = es.ask(), np.array(plain.ask())
        np.testing.assert_allclose(X, Y, rtol=1e-10)
        es.tell(X, ellipsoid(X))
        plain.tell(list(Y), list(ellipsoid(Y)))
        np.testing.assert_allclose(es.state.belief.mean, plain.mean, rtol=1e-10)
        np.testing.assert_allclose(es.state.belief.standard_deviations(), plain.result.stds, rtol=1e-10)


def test_numpys_global_generator_is_left_alone() -> None:
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    advance(cones.CMA(np.zeros(3), rng=0), 3)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_options_reach_pycma() -> None:
    es = cones.CMA(np.zeros(4), rng=0, options={"CMA_mu": 2, "popsize": 12})
    assert es.popsize == 12
    assert es.engine.sp.weights.mu == 2
    assert cones.CMA(np.zeros(4), popsize=20, rng=0).engine.popsize == 20
    assert cones.CMA(np.zeros(4), diagonal=True, rng=0).engine.opts["CMA_diagonal"] is True


@pytest.mark.parametrize(
    "options",
    [{"CMA_mu": "9**9**9**9"}, {"CMA_mu": {"dict": {}}}, {"popsize": 10**9}, {"transformation": 1}, ["CMA_mu"]],
)
def test_options_in_a_checkpoint_are_plain_values(options: object, tmp_path: Path) -> None:
    """PyCMA evaluates text as code: this one would compute for ever."""
    path = tmp_path / "run.ckpt"
    cones.CMA(np.zeros(4), rng=0).save(path)
    header, arrays = read_archive(path)
    header["strategy"]["parts"]["options"] = {"dict": options} if isinstance(options, dict) else options
    write_archive(path, header, arrays)
    with pytest.raises(cones.CheckpointError, match="options"):
        cones.load(path)
    with pytest.raises(cones.InputError, match="expected numbers, booleans, None or lists for 'CMA_mu'"):
        cones.CMA(np.zeros(4), rng=0, options={"CMA_mu": "popsize // 3"})


def test_a_diagonal_covariance_in_one_dimension() -> None:
    assert cones.minimize(
        lambda x: float(x @ x), [3.0], sigma0=0.5, method="cma", diagonal=True, rng=0, ftarget=1e-6
    ).success


@pytest.mark.parametrize("when", [0, 4])
def test_checkpoint_goes_on_bit_for_bit(when: int, tmp_path: Path) -> None:
    straight, broken = (cones.CMA(np.zeros(5), [1.0, 2.0, 3.0, 4.0, 5.0], bounds=[(-3, 3)] * 5, rng=1) for _ in "ab")
    advance(straight, 9)
    advance(broken, when)
    broken.save(tmp_path / "run.ckpt")
    again = cones.load(tmp_path / "run.ckpt")
    advance(again, 9 - when)
    np.testing.assert_array_equal(again.state.belief.mean, straight.state.belief.mean)
    np.testing.assert_array_equal(again.ask(), straight.ask())
    np.testing.assert_array_equal(again.history["mean_loss"], straight.history["mean_loss"])
    assert (np.abs(again.ask()) <= 3.0).all()


def test_nan_and_infinite_losses(tmp_path: Path) -> None:
    es = cones.CMA(np.zeros(3), popsize=4, rng=0)
    es.tell(es.ask(), [np.nan, np.inf, 1.0, -np.inf])
    with pytest.warns(RuntimeWarning, match="no loss of the population is finite"):
        es.tell(es.ask(), [np.inf] * 4)
    for _ in range(9):
        assert es.stop() is None
        es.tell(es.ask(), [np.nan] * 4)
    assert es.stop() is not None
    advance(es, 2)
    es.save(tmp_path / "run.ckpt")
    np.testing.assert_array_equal(cones.load(tmp_path / "run.ckpt").ask(), es.ask())


def test_interrupted_tell_is_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    straight, broken = (cones.CMA(np.zeros(3), rng=0) for _ in "ab")
    advance(straight, 3)
    advance(broken, 2)
    X = broken.ask()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(broken.engine, "tell", interrupt)
    with pytest.raises(KeyboardInterrupt):
        broken.tell(X, ellipsoid(X))
    broken.tell(X, ellipsoid(X))
    np.testing.assert_array_equal(broken.state.belief.mean, straight.state.belief.mean)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"options": {"CMA_nu": 2}}, "options: expected options of PyCMA, got 'CMA_nu'"),
        ({"options": {"typical_x": [1, 2]}}, "options: 'typical_x' is not accepted; it changes the meaning of x"),
        ({"options": {"bounds": [0, 1]}}, "options: 'bounds' is not accepted; use bounds="),
        ({"options": {"maxiter": 3}}, "options: 'maxiter' is not accepted; use the stop criteria"),
        ({"options": 3}, "options: expected a mapping"),
        ({"diagonal": "no"}, "diagonal: expected True or False, got 'no'"),
        ({"popsize": 1}, "popsize: expected at least 2, got 1"),
        ({"sigma0": -1.0}, "sigma0: expected positive numbers"),
        ({"x0": [np.nan]}, "x0: expected finite numbers"),
    ],
)
def test_bad_input_is_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        cones.CMA(**{"x0": [0.0, 0.0], **settings})


def test_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'cma>="):
        cones.CMA([0.0, 0.0])
