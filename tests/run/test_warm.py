"""Warm starts, against minima that are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds, OptimizeResult

import cones
from cones import FullGaussian, InputError


def known(n: int, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, their losses on a separable quadratic, and its minimum."""
    rng = np.random.default_rng(seed)
    minimum, X = rng.uniform(-1.5, 1.5, n), rng.standard_normal((count, n))
    return X, (np.linspace(1.0, 100.0, n) * (X - minimum) ** 2).sum(axis=1), minimum


def test_a_quadratic_is_found_exactly_and_the_spread_has_its_shape() -> None:
    X, y, minimum = known(30, 300)
    x0, sigma0 = cones.start_from((X, y))
    np.testing.assert_allclose(x0, minimum, atol=1e-3)
    assert sigma0.max() < 0.05
    noise = 10.0 * np.random.default_rng(1).standard_normal(300)
    _, wide = cones.start_from((X, y + noise))
    assert wide[0] > 3.0 * wide[-1] > 3.0 * sigma0[-1]  # flat directions are wide, noise is wider


def test_few_or_unpredictable_points_give_mean_and_covariance_of_the_best() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((400, 5)), rng.random(400)
    belief, none = cones.start_from((X, y))
    best = X[np.argsort(y)[:40]]
    assert isinstance(belief, FullGaussian)
    assert none is None
    np.testing.assert_allclose(belief.mean, best.mean(axis=0))
    expected = 0.95 * np.cov(best, rowvar=False) + 0.05 * np.diag(best.var(axis=0))
    np.testing.assert_allclose(belief.covariance, expected)
    mean, deviations = cones.start_from((X[:12], y[:12]))
    best = X[:12][np.argsort(y[:12])[:8]]
    np.testing.assert_allclose(mean.mean if isinstance(mean, cones.Belief) else mean, best.mean(axis=0))
    assert deviations is None or (deviations > 0.0).all()


def test_a_warm_run_needs_half_of_the_evaluations() -> None:
    X, y, minimum = known(20, 200)
    weights = np.linspace(1.0, 100.0, 20)

    def fun(x: np.ndarray) -> float:  # no quadratic, and elsewhere than the known one
        return float((weights * np.abs(x - minimum - 0.02) ** 2.2).sum())

    cold = cones.minimize(fun, np.zeros(20), rng=0, ftarget=1e-2, maxfev=20_000)
    warm = cones.minimize(fun, initial=(X, y), sigma0=0.05, rng=0, ftarget=1e-2, maxfev=20_000)
    assert cold.stop == warm.stop == "ftarget"
    assert warm.nfev < 0.5 * cold.nfev


def test_results_checkpoints_and_beliefs_begin_where_they_ended(tmp_path: Path) -> None:
    def fun(x: np.ndarray) -> float:
        return float((x**2).sum())

    path = tmp_path / "run.ckpt"
    first = cones.minimize(fun, np.ones(3), rng=0, maxfev=200, checkpoint=path)
    for initial in (first, first.belief, path, str(path)):
        x0, sigma0 = cones.start_from(initial)
        assert sigma0 is None
        np.testing.assert_array_equal(x0.mean, first.belief.mean)
    assert cones.start_from(first, 0.5)[0].spread() == pytest.approx(0.5)
    again = cones.minimize(fun, initial=first, rng=1, maxfev=200)
    assert again.fun < first.fun


def test_bounds_leave_points_out_and_hold_the_mean() -> None:
    X, y, minimum = known(4, 200)
    low = minimum + 0.3
    for bounds in (Bounds(low, np.inf), [(float(value), None) for value in low]):
        x0, _ = cones.start_from((X, y), bounds=bounds)
        mean = x0.mean if isinstance(x0, cones.Belief) else x0
        assert (mean >= low).all()
        result = cones.minimize(lambda x: float(((x - minimum) ** 2).sum()), initial=(X, y), bounds=bounds, maxfev=99)
        assert (result.x >= low).all()
    with pytest.raises(InputError, match="initial: expected at least 4 points within bounds, got 0"):
        cones.start_from((X, y), bounds=[(100.0, 101.0)] * 4)
    with pytest.raises(InputError, match="x0: expected a start within bounds"):
        cones.start_from(FullGaussian(np.zeros(2), np.eye(2)), bounds=[(1.0, 2.0)] * 2)
    with pytest.raises(InputError, match="bounds: expected 4 pairs"):
        cones.start_from((X, y), bounds=[(0.0, 1.0)])


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        ((np.zeros((5, 2)), [0.0, 1.0, np.nan, 2.0, 3.0]), "initial y: expected known numbers, got nan in row 2"),
        (([[0.0, np.inf]] * 5, np.zeros(5)), "initial X: expected known numbers, got inf in row 0"),
        ((np.zeros((3, 2)), np.zeros(3)), "initial: expected at least 4 points, got 3"),
        ((np.zeros((5, 2)), np.zeros(4)), r"initial y: expected 5 losses, one per row, got shape \(4,\)"),
        ((np.zeros(5), np.zeros(5)), r"initial X: expected points, one per row, got shape \(5,\)"),
        ((np.zeros((5, 2)), np.full(5, np.inf)), "initial y: expected at least one finite loss"),
        (7, r"initial: expected \(X, y\), a result, a checkpoint's path or a belief, got int"),
        (OptimizeResult(x=1), "initial: expected a result of cones, got one without a belief"),
        ("nowhere.ckpt", "initial: expected the path of a checkpoint, got 'nowhere.ckpt', which does not exist"),
    ],
)
def test_bad_initial_is_named(initial: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        cones.minimize(lambda x: 0.0, initial=initial)


def test_a_start_and_initial_exclude_each_other() -> None:
    with pytest.raises(InputError, match="x0: expected none beside initial"):
        cones.minimize(lambda x: 0.0, [1.0], initial=([[1.0]] * 4, [1.0] * 4))
    with pytest.raises(InputError, match="x0: expected a start, or initial, got neither"):
        cones.minimize(lambda x: 0.0)


def test_a_run_in_a_space_is_no_start_for_one_over_vectors(tmp_path: Path) -> None:
    space, path = cones.Space(a=cones.Float(-1, 1), b=cones.Integer(0, 9)), tmp_path / "run.ckpt"
    result = cones.minimize(lambda values: values["a"] ** 2, space, maxiter=2, rng=0, checkpoint=path)
    for initial in (result, path):
        with pytest.raises(InputError, match="initial: expected a run over vectors, got one in a space"):
            cones.minimize(lambda x: (x**2).sum(), initial=initial)


@pytest.mark.parametrize("settings", [{"method": "tres"}, {"belief": "diagonal"}, {"dtype": "float32"}])
def test_few_points_leave_the_kind_of_belief_to_the_user(settings: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10, 3)), rng.normal(size=10)
    full, _ = cones.start_from((X, y))
    assert isinstance(full, FullGaussian)
    starts: list[np.ndarray] = []

    def loss(x: np.ndarray) -> float:
        starts.append(x)
        return float((x**2).sum())

    result = cones.minimize(loss, initial=(X, y), maxiter=1, rng=0, **settings)
    assert isinstance(result.belief, cones.DiagonalGaussian)
    np.testing.assert_allclose(starts[0], full.mean, rtol=1e-6)


def in_many_dimensions(fun: Any, known: Any, **more: Any) -> Any:
    X = np.random.default_rng(3).uniform(-3.0, 0.6, (400, 60))
    settings: dict[str, Any] = {"rng": 0, "maxfev": 1000, "vectorized": True, "restarts": 0, **more}
    return cones.minimize(fun, initial=(X, known(X)), **settings)


def shifted(minimum: float, weights: Any = 1.0) -> Any:
    return lambda X: (weights * (X - minimum) ** 2).sum(axis=1)


@pytest.mark.parametrize("weights", [1.0, np.logspace(0, 4, 60)])
def test_one_round_finds_where_a_quadratic_has_moved_to(weights: Any) -> None:
    """One start, 1.3 n + 10 points and the minimum of their model."""
    result = in_many_dimensions(shifted(0.7, weights), shifted(0.5, weights), sigma0=0.2, ftarget=1e-6)
    assert result.nfev == 1 + 88 + 1
    np.testing.assert_allclose(result.x, 0.7, atol=1e-3)


def test_a_refined_start_is_within_bounds_and_the_budget() -> None:
    asked = []

    def fun(X: np.ndarray) -> np.ndarray:
        asked.append(X)
        return shifted(0.7)(X)

    result = in_many_dimensions(fun, shifted(0.5), sigma0=0.2, bounds=[(-3.0, 0.6)] * 60, maxfev=300)
    assert np.concatenate(asked).max() <= 0.6
    assert sum(map(len, asked)) == result.nfev <= 300
    assert result.fun == pytest.approx(0.6, rel=0.2)  # 60 times 0.1^2
    asked.clear()
    in_many_dimensions(fun, shifted(0.5), maxfev=60)  # no room for a round
    assert len(asked[1]) < 88


def test_where_the_model_says_nothing_the_belief_takes_over() -> None:
    calls = []

    def flat(X: np.ndarray) -> np.ndarray:
        calls.append(len(X))
        return np.zeros(len(X)) if len(calls) < 3 else shifted(0.7)(X)

    result = in_many_dimensions(flat, shifted(0.5), maxfev=200)
    assert calls[:2] == [1, 88]
    assert max(calls[2:]) < 88
    assert result.nit > 0
    noisy = in_many_dimensions(shifted(0.7), shifted(0.5), sigma0=0.2, noisy=True, maxfev=200)
    assert noisy.history["evaluations"][0] < 60  # noise is none of its slopes: no rounds


def test_failures_of_the_first_model_are_named_and_a_refined_run_is_the_same_from_its_checkpoint(
    tmp_path: Path,
) -> None:
    def fails(X: np.ndarray) -> np.ndarray:
        losses = shifted(0.7)(X)
        losses[X[:, 0] > 0.8] = np.nan
        return losses

    settings: dict[str, Any] = {"sigma0": 0.2, "ftol": None, "xtol": None}
    whole = in_many_dimensions(fails, shifted(0.5), maxiter=8, **settings)
    path = tmp_path / "run.ckpt"
    in_many_dimensions(fails, shifted(0.5), maxiter=3, checkpoint=path, **settings)
    again = cones.resume(path, fails, maxiter=8)
    np.testing.assert_array_equal(again.belief.mean, whole.belief.mean)
    assert again.nfev == whole.nfev
