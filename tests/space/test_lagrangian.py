"""The augmented Lagrangian: its formula, and multipliers that are those of the solution."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar, nnls

import cones
from cones import InputError
from cones.space.lagrangian import Lagrangian, violations_of


@given(st.floats(-5, 5), st.floats(0, 5), st.floats(0.1, 10))
@settings(max_examples=50, deadline=None)
def test_the_merit_is_a_minimum_over_slacks(g: float, y: float, w: float) -> None:
    # min over s >= 0 of y (g + s) + w/2 (g + s)^2
    found = Lagrangian(np.array([y]), np.array([w]), np.empty((0, 2))).merits(np.array([[3.0, g]]))[0]
    best = minimize_scalar(lambda s: y * (g + s) + w / 2 * (g + s) ** 2, bounds=(0, 200), options={"xatol": 1e-9})
    at_zero = y * g + w / 2 * g**2
    np.testing.assert_allclose(found, 3.0 + min(best.fun, at_zero), rtol=1e-6, atol=1e-6)


@given(st.floats(-5, 5), st.floats(0, 5), st.floats(0.1, 10))
@settings(max_examples=30, deadline=None)
def test_the_merit_is_smooth_across_a_bound(place: float, y: float, w: float) -> None:
    # At a solution on the bound, f has the slope -y along r; it is evaluated at the nearest point inside.
    def merit(r: float) -> float:
        return float(Lagrangian(np.array([y]), np.array([w]), np.empty((0, 2)), 1).merits(np.array([[f(r), r]]))[0])

    def f(r: float) -> float:
        return place - y * min(r, 0.0)

    h = 1e-5 * min(1.0, y / w) + 1e-9
    assert merit(0.0) == place
    assert abs(merit(h) - merit(-h)) <= 10.0 * w * h * h + 1e-12
    np.testing.assert_allclose(merit(2.0), place + 2.0 * w, rtol=1e-9, atol=1e-9)


def test_violations_are_the_largest_and_nan_is_infinite() -> None:
    rows = np.array([[-1.0, -2.0], [0.5, 3.0], [np.nan, -1.0], [-np.inf, np.inf]])
    np.testing.assert_array_equal(violations_of(rows), [0.0, 3.0, np.inf, np.inf])


def told(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((30, 4))


@given(st.integers(0, 1000), st.integers(-40, 40), st.lists(st.integers(-40, 40), min_size=3, max_size=3))
@settings(max_examples=30, deadline=None)
def test_scales_of_losses_and_constraints_do_not_matter(seed: int, of_loss: int, of_rows: list[int]) -> None:
    scales = 2.0 ** np.array([of_loss, *of_rows])
    one, other = Lagrangian.start(3), Lagrangian.start(3)
    for k in range(4):
        one, other = one.learnt(told(seed + k), 5), other.learnt(told(seed + k) * scales, 5)
    np.testing.assert_allclose(other.multipliers * scales[1:] / scales[0], one.multipliers, rtol=1e-8, atol=1e-12)
    rows = told(seed + 9)
    np.testing.assert_allclose(other.merits(rows * scales) / scales[0], one.merits(rows), rtol=1e-8, atol=1e-10)


def test_rows_that_are_not_finite_teach_nothing() -> None:
    rows = told(3)
    spoilt = np.concatenate([rows, [[np.nan, 0, 0, 0], [1, np.inf, 0, 0], [-np.inf, 1, 1, 1]]])
    one, other = (Lagrangian.start(3).learnt(r, 50) for r in (rows, spoilt))
    np.testing.assert_array_equal(one.multipliers, other.multipliers)
    assert Lagrangian.start(3).learnt(np.full((5, 4), np.nan), 5).penalties.sum() == 0.0


def test_a_constant_loss_still_searches_for_feasible_points() -> None:
    es = cones.CoNES(np.full(4, 5.0), 0.5, rng=1, maxfev=3000)
    while es.state.iteration < 100 and (es.state.best_x is None or not es.state.feasible):
        X = es.ask()
        es.tell(X, np.zeros(len(X)), constraints=(X**2).sum(axis=1) - 1.0)
    assert es.result.maxcv <= 1e-8
    assert (es.result.x**2).sum() <= 1.0 + 1e-8


@pytest.mark.parametrize("seed", [0, 1])
def test_multipliers_converge_to_those_of_the_solution(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, A = 6, rng.standard_normal((4, 6))
    centre = A.sum(axis=0)  # far outside A x <= 1
    es = cones.CoNES(np.zeros(n), 1.0, rng=seed, maxfev=6000)
    while not es.stop():
        X = es.ask()
        es.tell(X, 0.5 * ((X - centre) ** 2).sum(axis=1), constraints=X @ A.T - 1.0)
    # The dual of the projection: min over y >= 0 of 1/2 |A^T y|^2 - y^T (A centre - 1).
    root = np.linalg.cholesky(A @ A.T)
    exact, _ = nnls(root.T, np.linalg.solve(root, A @ centre - 1.0))
    assert (exact > 0).sum() >= 2
    np.testing.assert_allclose(es.state.lagrangian.multipliers, exact, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(es.result.x, centre - A.T @ exact, atol=1e-4)


def test_a_checkpoint_with_other_sizes_is_refused() -> None:
    with pytest.raises(InputError, match="penalties: expected shape"):
        Lagrangian.restored({"multipliers": np.zeros(2), "penalties": np.zeros(3), "latest": np.zeros((0, 3))})
    with pytest.raises(InputError, match="expected numbers of at least 0"):
        Lagrangian.restored({"multipliers": -np.ones(2), "penalties": np.ones(2), "latest": np.zeros((0, 3))})
