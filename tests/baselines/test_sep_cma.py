from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import cones
from cones import InputError, MissingExtraError

cmaes = pytest.importorskip("cmaes")


def ellipsoid(X: np.ndarray) -> np.ndarray:
    return ((X - 1.0) ** 2 * 10.0 ** np.arange(X.shape[1])).sum(axis=1)


def test_minimises() -> None:
    result = cones.minimize(ellipsoid, np.zeros(5), method="sepcma", vectorized=True, rng=0, ftarget=1e-9)
    assert result.success
    np.testing.assert_allclose(result.x, 1.0, atol=1e-3)


def test_is_the_package_itself() -> None:
    es = cones.SepCMA(np.zeros(4), 0.5, rng=7)
    plain = cmaes.SepCMA(np.zeros(4), 0.5, seed=7)
    assert es.popsize == plain.population_size == 8
    for _ in range(20):
        X, Y = es.ask(), np.array([plain.ask() for _ in range(8)])
        np.testing.assert_allclose(X, Y, rtol=1e-9)
        es.tell(X, ellipsoid(X))
        plain.tell([(y, float(loss)) for y, loss in zip(Y, ellipsoid(Y), strict=True)])
        np.testing.assert_allclose(es.state.belief.mean, plain.mean, rtol=1e-9)


def test_checkpoint_goes_on_bit_for_bit(tmp_path: Path) -> None:
    def advance(es: cones.Strategy, iterations: int) -> cones.Strategy:
        for _ in range(iterations):
            X = es.ask()
            es.tell(X, ellipsoid(X))
        return es

    settings = {"sigma0": [1.0, 2.0, 3.0, 4.0, 5.0], "bounds": [(-3, 3)] * 5, "rng": 2**40}
    straight, broken = (advance(cones.SepCMA(np.zeros(5), **settings), count) for count in (9, 4))
    broken.save(tmp_path / "run.ckpt")
    again = advance(cones.load(tmp_path / "run.ckpt"), 5)
    np.testing.assert_array_equal(again.ask(), straight.ask())
    assert (np.abs(again.ask()) <= 3.0).all()


def test_one_dimension_is_refused() -> None:
    with pytest.raises(InputError, match="x0: expected at least two coordinates"):
        cones.SepCMA([0.0])


def test_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"SepCMA needs the package cmaes.*pip install .*'cmaes>="):
        cones.SepCMA([0.0, 0.0])


def test_divergence_is_a_reason_to_stop(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    result = cones.minimize(
        lambda x: float(x[0]), [3.0, 1.0, 1.0], method="sepcma", rng=0, maxiter=1000, checkpoint=path
    )
    assert (result.stop, result.success) == ("diverged", False)
    assert np.isfinite(result.mean).all()
    assert cones.resume(path, lambda x: float(x[0]), maxiter=result.nit + 1).stop == "diverged"
