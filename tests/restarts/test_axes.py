"""The search along the axes: who is searched, which value comes next, and what it finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cones
from cones.problems import problem_from
from cones.restarts import AxisSearch
from cones.restarts.axes import GAIN, SIGNS, _easiest


def searched(fun, base, deviation: float = 1.0, seed: int = 0, rounds: int = 1, box=None) -> tuple[AxisSearch, int]:
    """The search after some rounds, and the evaluations that it took."""
    base = np.asarray(base, dtype=np.float64)
    first = cones.DiagonalGaussian(base, np.full(base.size, deviation**2))
    search = AxisSearch.start(base, float(fun(base[None, :])[0]), first, box, np.random.default_rng(seed))
    evaluations = 0
    for number in range(rounds):
        search = search.next_round() if number else search
        while not search.ended:
            X = search.candidates()
            assert len(X) == search.popsize
            evaluations += len(X)
            search = search.told(fun(X))
    return search, evaluations


def ripples(X: np.ndarray) -> np.ndarray:
    """Separable, with the minimum 0 at (0.3, 0.3, ...), between two others on each axis."""
    Z = X - 0.3
    return (10.0 * Z**2 + 3.0 * (1.0 - np.cos(2.0 * np.pi * Z))).sum(axis=1)


def rotation(n: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(n).standard_normal((n, n)))[0]


@pytest.mark.parametrize("n", [2, 3, 7, 25])
@pytest.mark.parametrize("monotone", [lambda f: f, np.sqrt, lambda f: np.exp(f / 200.0), lambda f: f**3])
def test_any_monotone_function_of_a_sum_is_searched(n: int, monotone) -> None:
    search, evaluations = searched(lambda X: monotone(ripples(X)), np.full(n, 1.0), seed=n)
    assert not len(search.pairs)
    assert search.found
    assert evaluations > -(-SIGNS // n) * (2 * n + 2)
    np.testing.assert_allclose(search.best(), 0.3, atol=0.02)


@pytest.mark.parametrize("n", [3, 7, 25])
def test_rotated_and_noisy_losses_are_refused_after_few_evaluations(n: int) -> None:
    R, rng = rotation(n), np.random.default_rng(0)
    weights = 10.0 ** np.linspace(0.0, 3.0, n)
    for fun in (lambda X: ((X @ R) ** 2) @ weights, lambda X: rng.standard_normal(len(X))):
        found = [searched(fun, np.full(n, 1.0), seed=seed) for seed in range(20)]
        refused = [evaluations for search, evaluations in found if len(search.pairs)]
        assert len(refused) >= 19
        assert np.median(refused) <= 3 * (2 * n + 2)
        assert all(not search.found for search, _ in found if len(search.pairs))


def test_the_pairs_exchange_one_coordinate() -> None:
    first = cones.DiagonalGaussian(np.zeros(3), np.ones(3))
    search = AxisSearch.start(np.zeros(3), 0.0, first, None, np.random.default_rng(0))
    X = search.candidates()
    u, v = X[:2]
    assert len(X) == 8
    for i in range(3):
        assert (X[2 + i] != u).nonzero()[0].tolist() == [i]
        assert (X[5 + i] != v).nonzero()[0].tolist() == [i]
        assert (X[2 + i, i], X[5 + i, i]) == (v[i], u[i])


@given(st.lists(st.floats(-10, 10), min_size=3, max_size=12, unique=True), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=100, derandomize=True)
def test_the_next_value_needs_the_flattest_parabola(positions: list[float], seed: int) -> None:
    """In the chosen interval, a (x - c)^2 + lowest - eps meets both ends; in the others, a larger a would."""
    x = np.sort(np.array(positions))
    if np.diff(x).min() < 1e-6:
        return
    f = np.random.default_rng(seed).normal(size=x.size)
    middle, a = _easiest(x, f)
    level = f.min() - GAIN * (np.median(f) - f.min())

    def spanned(k: int) -> float:
        """The distance between the two points where the parabola reaches the losses at the ends."""
        return float(np.sqrt((f[k] - level) / a) + np.sqrt((f[k + 1] - level) / a))

    chosen = int(np.searchsorted(x, middle)) - 1
    assert middle == pytest.approx(0.5 * (x[chosen] + x[chosen + 1]))
    assert spanned(chosen) == pytest.approx(x[chosen + 1] - x[chosen])
    for k in range(x.size - 1):
        assert spanned(k) >= (x[k + 1] - x[k]) * (1.0 - 1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_it_finds_the_global_minimum_of_random_waves(seed: int) -> None:
    """Against a grid of 200 001 values: a sum of five waves and a weak bowl, with about ten minima."""
    rng = np.random.default_rng(seed)
    height, frequency, phase = rng.uniform(0.5, 1.0, 5), rng.uniform(1.0, 6.0, 5), rng.uniform(0.0, 6.28, 5)

    def fun(X: np.ndarray) -> np.ndarray:
        t = X[:, 0][:, None]
        return (height * np.sin(frequency * t + phase)).sum(axis=1) + 0.05 * X[:, 0] ** 2

    search, evaluations = searched(fun, [0.0], rounds=2)
    truth = fun(np.linspace(-4.0, 4.0, 200_001)[:, None]).min()
    assert evaluations < 400
    assert search.joint - truth < 1e-3


def test_a_contradiction_ends_it() -> None:
    """The pairs are far out, where it is a sum; near the base the better value of x depends on y."""

    def fun(X: np.ndarray) -> np.ndarray:
        x, y = X.T
        return np.where(np.abs(X).max(axis=1) < 5.0, x * y, 100.0 + x + y)

    first = cones.DiagonalGaussian(np.full(2, 10.0), np.full(2, 0.25))
    base = np.array([0.1, 0.1])
    search = AxisSearch.start(base, float(fun(base[None, :])[0]), first, None, np.random.default_rng(0))
    while not search.ended:
        search = search.told(fun(search.candidates()))
    assert not len(search.pairs)  # each axis falls towards -1.9, and there the product is large
    assert not search.found
    assert not search.live.any()


def test_a_failed_evaluation_is_no_minimum() -> None:
    def fun(X: np.ndarray) -> np.ndarray:
        return np.where(np.abs(X - 2.0).min(axis=1) < 0.3, np.nan, ripples(X))

    first = cones.DiagonalGaussian(np.zeros(3), np.full(3, 0.1))
    search = AxisSearch.start(
        np.full(3, 1.1), float(fun(np.full((1, 3), 1.1))[0]), first, None, np.random.default_rng(1)
    )
    while not search.ended:
        search = search.told(fun(search.candidates()))
    np.testing.assert_allclose(search.best(), 0.3, atol=0.02)


class TestInARun:
    def test_a_separable_loss_with_many_minima_is_solved(self) -> None:
        problem = problem_from("rastrigin", 8, shift=2.7)
        common = {"sigma0": 1.0, "rng": 0, "maxfev": 6000, "ftarget": 1e-8, "vectorized": True}
        result = cones.minimize(problem.losses, np.zeros(8), **common)
        assert result.success
        assert result.nfev < 4000
        assert np.nanmax(result.history["searched_axes"]) == 8
        without = cones.minimize(problem.losses, np.zeros(8), restarts="bipop,axes=False", **common)
        assert "searched_axes" not in without.history
        assert without.fun > 0.9

    def test_all_candidates_are_inside_the_bounds(self) -> None:
        seen = []

        def fun(X: np.ndarray) -> np.ndarray:
            seen.append(X.copy())
            return ripples(X)

        bounds = [(0.0, 3.0), (-1.0, None), (0.5, 0.5)]
        x0, settings = [2.0, 3.0, 0.5], {"rng": 0, "maxfev": 4000, "vectorized": True}
        result = cones.minimize(fun, x0, bounds=bounds, sigma0=1.0, **settings)
        assert np.nanmax(result.history["searched_axes"]) == 2
        X = np.concatenate(seen)
        assert ((X >= [0.0, -1.0, 0.5]) & (X <= [3.0, np.inf, 0.5])).all()
        np.testing.assert_allclose(result.x, [0.3, 0.3, 0.5], atol=1e-4)

    @pytest.mark.parametrize(
        "why",
        [
            {"noisy": True},
            {"restarts": "growing"},
            {"belief": "diagonal", "dtype": "float32"},
            {"constraints": {"type": "ineq", "fun": lambda x: x.sum() + 100.0}},
        ],
        ids=lambda why: next(reversed(why)),
    )
    def test_where_it_is_left_out(self, why) -> None:
        result = cones.minimize(
            lambda x: float(ripples(x[None, :])[0]), np.full(3, 2.0), maxfev=3000, ftol=1e-3, rng=0, **why
        )
        assert "searched_axes" not in result.history

    def test_a_loss_without_a_lowest_value_is_not_searched(self) -> None:
        settings = {"maxfev": 3000, "ftol": 1e-3, "rng": 0}
        result = cones.minimize(lambda x: -np.inf if x[0] > 2.5 else (x**2).sum(), np.full(3, 2.0), **settings)
        assert result.fun == -np.inf
        assert "searched_axes" not in result.history

    def test_integers_are_not_searched(self) -> None:
        space = cones.Space(a=cones.Integer(-5, 5), b=cones.Float(-5.0, 5.0))
        result = cones.minimize(lambda p: (p["a"] - 1) ** 2 + (p["b"] - 1.0) ** 2, space, maxfev=2000, rng=0)
        assert "searched_axes" not in result.history

    def test_its_population_is_told_as_a_whole(self) -> None:
        es = cones.CoNES(np.full(3, 2.0), rng=0, restarts="auto", ftol=1e-3, maxfev=5000)
        while "searched_axes" not in es.history:
            X = es.ask()
            es.tell(X, ripples(X))
        X = es.ask()
        for attempt in (lambda: es.tell(X[:1], ripples(X[:1])), lambda: es.ask(1)):
            with pytest.raises(cones.InputError, match="whole population in a search along the axes"):
                attempt()
        es.tell(X, ripples(X))
        assert es.state.evaluations == es.history["evaluations"][-1]
