"""BIPOP's two regimes, beside a second implementation of Hansen (2009)."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cones
from cones.problems import problem_from
from cones.restarts import Bipop, DescentEnd
from cones.restarts.start import generator


def second_implementation(popsize: int, lengths: list[int], uniforms: list[np.ndarray]) -> list[tuple[str, int, float]]:
    """Regime, popsize and factor of sigma0 of each restart, as the paper has them: lists, and no state."""
    runs = [("first", popsize, lengths[0])]
    out = []
    for (u_sigma, u_popsize), length in zip(uniforms, lengths[1:], strict=True):
        spent = {kind: sum(n for k, _, n in runs if k in kinds) for kind, kinds in
                 (("large", ["large"]), ("small", ["small", "first"]))}  # fmt: skip
        largest = max(p for k, p, _ in runs if k != "small")
        if spent["large"] <= spent["small"]:
            kind, size, factor = "large", 2 * largest, 1.0
        else:
            size = math.floor(popsize * (0.5 * largest / popsize) ** (u_popsize**2))
            kind, size, factor = "small", size - size % 2, 10.0 ** (-2.0 * u_sigma)
        runs.append((kind, size, length))
        out.append((kind, size, factor))
    return out


@pytest.mark.parametrize("seed", range(20))
def test_regimes_are_those_of_the_paper(seed: int) -> None:
    rng = np.random.default_rng(seed)
    popsize, count = int(2 * rng.integers(2, 20)), 15
    lengths = [int(n) for n in rng.integers(100, 10_000, count + 1)]
    uniforms = [np.random.default_rng(number).random(2) for number in range(count)]
    state, current, seen = None, popsize, []
    for number in range(count):
        end = DescentEnd(number, popsize, current, lengths[number])
        following, state = Bipop(growth=2.0).next(state, end, np.random.default_rng(number))
        kind = "large" if following.factor == 1.0 else "small"
        if kind == "small":
            assert following.limit == following.plan
        seen.append((kind, following.popsize, following.factor))
        current = following.popsize
        assert following.elsewhere
    assert seen == second_implementation(popsize, lengths, uniforms)
    assert {kind for kind, _, _ in seen} == {"large", "small"}


def test_a_small_descent_has_half_of_the_evaluations_of_the_last_large_one() -> None:
    rng = np.random.default_rng(0)
    large, state = Bipop(growth=2.0).next(None, DescentEnd(0, 10, 10, 1000), rng)
    assert (large.popsize, large.limit, large.plan) == (20, math.inf, 2000.0)
    small, state = Bipop(growth=2.0).next(state, DescentEnd(1, 10, 20, 3000), rng)
    assert (small.popsize, small.limit, small.plan) == (10, 1500.0, 1500.0)
    assert 0.01 <= small.factor < 1.0


def test_a_large_descent_that_does_not_fit_is_replaced_by_a_small_one() -> None:
    for left, popsize in ((1000, 20), (999, 10)):
        following, _ = Bipop(growth=2.0).next(None, DescentEnd(0, 10, 10, 1000, left), np.random.default_rng(0))
        assert following.popsize == popsize
    assert Bipop(growth=2.0).next(None, DescentEnd(0, 10, 10, 1000, 199), np.random.default_rng(0))[0] is None


def test_the_share_that_must_be_left_is_that_after_the_first_descent() -> None:
    policy, rng = Bipop(share=0.5), np.random.default_rng(0)
    assert policy.next(None, DescentEnd(0, 10, 10, 1000, 9000, 0.49), rng)[0] is None
    following, state = policy.next(None, DescentEnd(0, 10, 10, 1000, 9000, 0.5), rng)
    assert following is not None
    assert policy.next(state, DescentEnd(1, 10, 20, 3000, 6000, 0.3), rng)[0] is not None


def run(fun, x0, **settings) -> cones.Strategy:
    es = cones.CoNES(x0, **settings)
    while es.stop() is None:
        X = es.ask()
        es.tell(X, fun(X))
    return es


def starts_of(fun, x0, count: int, **settings) -> list[cones.Belief]:
    es, seen = cones.CoNES(x0, **settings), {}
    while es.stop() is None and len(seen) <= count:
        seen.setdefault(es.state.restarts, es.state.belief)
        X = es.ask()
        es.tell(X, fun(X))
    return list(seen.values())[: count + 1]


def test_starts_are_uniform_in_the_box_and_normal_where_there_is_none() -> None:
    """Kolmogorov-Smirnov against both distributions; one coordinate has one bound."""
    from scipy.stats import kstest

    bounds = [(-1.0, 3.0), (None, None), (0.0, None), (2.0, 2.0)]
    settings = {"restarts": "bipop,growth=2", "ftol": 1e9, "maxfev": 10**7, "popsize": 4, "rng": 1}
    beliefs = starts_of(lambda X: X[:, 0], [0.0, 5.0, 0.5, 2.0], 150, bounds=bounds, sigma0=0.5, **settings)
    means = np.array([belief.mean for belief in beliefs[1:]])
    assert len(np.unique(means[:, 0])) == 150
    assert (means[:, 2] >= 0.0).all()
    assert (means[:, 3] == 2.0).all()
    assert kstest(means[:, 0], "uniform", (-1.0, 4.0)).pvalue > 0.01
    assert kstest(means[:, 1], "norm", (5.0, 0.5)).pvalue > 0.01
    spreads = np.array([belief.standard_deviations()[1] for belief in beliefs[1:]]) / 0.5
    small = spreads[spreads < 1.0]
    assert 30 < small.size < 150
    assert kstest(np.log10(small), "uniform", (-2.0, 2.0)).pvalue > 0.01


def test_a_belief_with_correlations_keeps_them() -> None:
    covariance = np.array([[2.0, 1.2], [1.2, 1.0]])
    x0 = cones.FullGaussian([1.0, 2.0], covariance)
    beliefs = starts_of(
        lambda X: X[:, 0], x0, 20, restarts="bipop,axes=False", ftol=1e9, maxfev=10**6, popsize=4, rng=1
    )
    factors = set()
    for belief in beliefs:
        factor = belief.covariance[0, 0] / 2.0
        factors.add(factor)
        np.testing.assert_allclose(belief.covariance, factor * covariance, rtol=1e-12)
        np.testing.assert_allclose(belief.precision @ belief.covariance, np.eye(2), atol=1e-9)
    assert len(factors) > 5


def test_float32_stays_float32() -> None:
    settings = {"restarts": "auto", "dtype": "float32", "belief": "diagonal", "ftol": 1e9, "maxfev": 5000, "rng": 0}
    es = run(lambda X: X[:, 0], np.zeros(4), **settings)
    assert es.state.restarts > 2
    assert es.state.belief.mean.dtype == es.state.belief.deviation.dtype == np.float32


def test_random_numbers_of_restarts_are_their_own() -> None:
    seen = {tuple(generator(seed, number).random(3)) for seed in (0, 1, 2**127) for number in range(5)}
    assert len(seen) == 15


class TestAuto:
    def test_it_finds_what_one_descent_does_not(self) -> None:
        problem = problem_from("rastrigin", 3, shift=3.0)
        settings = {"sigma0": 1.0, "rng": 2, "maxfev": 30_000, "ftarget": 1e-6}
        assert run(problem.losses, np.zeros(3), **settings).state.best_fun > 0.9
        es = run(problem.losses, np.zeros(3), restarts="auto", **settings)
        assert es.stop().name == "ftarget"
        assert es.state.restarts > 0

    def test_the_history_shows_restarts_and_popsizes(self) -> None:
        es = run(problem_from("sphere", 4).losses, np.ones(4), restarts="auto", ftol=1e-3, maxfev=6000, rng=0)
        history = es.history
        sizes = np.diff(history["evaluations"], prepend=0)
        np.testing.assert_array_equal(sizes, history["popsize"])
        assert set(np.diff(history["restart"])) == {0.0, 1.0}
        assert history["restart"][-1] == es.result.restarts
        searched = ~np.isnan(history["searched_axes"])  # populations of a search along the axes have sizes of their own
        assert set(history["restart"][searched]) == {1.0}
        for number in {*range(es.result.restarts + 1)} - {1}:
            assert len(set(sizes[history["restart"] == number])) == 1
        assert es.first_popsize == sizes[0]

    def test_the_budget_is_never_exceeded_and_is_used(self) -> None:
        for maxfev in (1000, 1777, 5000):
            es = run(problem_from("sphere", 4).losses, np.ones(4), restarts="auto", ftol=1e-3, maxfev=maxfev, rng=0)
            assert maxfev - 200 - es.popsize < es.state.evaluations <= maxfev

    def test_small_descents_end_at_their_limit(self) -> None:
        """On pure noise nothing else ends them: neither tolerance nor stagnation, which is off after the first."""
        rng = np.random.default_rng(0)

        def fun(X: np.ndarray) -> np.ndarray:
            return rng.standard_normal(len(X))

        es = run(fun, np.zeros(2), restarts="auto", stagnation=30, maxfev=20_000, rng=0)
        history = es.history
        lengths = [int(history["popsize"][history["restart"] == k].sum()) for k in range(es.state.restarts + 1)]
        assert es.state.restarts > 4
        small = [k for k in range(2, es.state.restarts) if lengths[k] <= 0.5 * max(lengths[:k])]
        assert small

    def test_the_first_descent_plans_for_the_budget_as_without_restarts(self) -> None:
        problem = problem_from("ellipsoid", 5, shift=1.0)
        settings = {"rng": 0, "maxfev": 400, "ftol": None, "xtol": None, "stagnation": None}
        one = run(problem.losses, np.zeros(5), **settings)
        other = run(problem.losses, np.zeros(5), restarts="auto", **settings)
        assert other.state.restarts == 0
        np.testing.assert_array_equal(one.history["spread"], other.history["spread"])

    def test_what_stops_in_a_restart_says_so(self) -> None:
        problem = problem_from("sphere", 4)
        for maxfev in range(3000, 4000, 97):  # one that ends in the middle of a descent
            result = run(problem.losses, np.ones(4), restarts="bipop,axes=False", maxfev=maxfev, rng=0).result
            if result.stop == "maxfev":
                break
        assert (result.stop, result.status, result.success) == ("maxfev", 1, True)
        assert result.restarts > 1
        assert result.message == (
            f"The budget of maxfev = {maxfev} evaluations is spent. There were {result.restarts} restarts, "
            "and the descent with the best loss has converged."
        )
        assert problem(result.mean) < 1e-10  # of the best descent, and not where the last one has come to
        assert result.belief.spread() < 1e-4

    def test_a_descent_that_is_best_and_not_finished_is_no_success(self) -> None:
        """A second basin, deeper, that only a restart finds, and no time to converge there."""

        def fun(X: np.ndarray) -> np.ndarray:
            near = (X**2).sum(axis=1)
            return np.where(X[:, 0] > 2.0, (X[:, 0] - 4.0) ** 2 + X[:, 1] ** 2 - 50.0, near)

        es = cones.CoNES([0.0, 0.0], 0.2, bounds=[(-1.0, 9.0), (-1.0, 1.0)], restarts="auto", maxfev=10**5, rng=0)
        while es.state.best_fun >= 0.0:
            X = es.ask()
            es.tell(X, fun(X))
        assert es.state.restarts > 0
        result = es.result
        assert result.fun < -20.0
        assert not result.success
        assert "has converged" not in result.message
        while es.stop() is None and es.history.latest("loss_deviation") > 1e-9:
            X = es.ask()
            es.tell(X, fun(X))
        assert es.result.fun == pytest.approx(-50.0)
