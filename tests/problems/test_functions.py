from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize, rosen

from cones import InputError
from cones.problems import PROBLEMS, Ackley, Lunacek, Rosenbrock, problem_from

every = pytest.mark.parametrize("name", PROBLEMS)


@every
@pytest.mark.parametrize("dim", [1, 2, 7])
def test_the_optimum_has_the_best_loss(name: str, dim: int) -> None:
    if dim < PROBLEMS[name].least_dim:
        with pytest.raises(InputError, match="dim: expected at least 2, got 1"):
            PROBLEMS[name](dim)
        return
    problem = PROBLEMS[name](dim)
    assert problem.optimum.shape == (dim,)
    assert problem(problem.optimum) == pytest.approx(problem.best, abs=1e-7)


@every
def test_nothing_nearby_or_at_random_is_better(name: str) -> None:
    problem = PROBLEMS[name](4)
    rng = np.random.default_rng(0)
    far = rng.uniform(*problem.domain, (20_000, 4))
    near = problem.optimum + rng.standard_normal((20_000, 4)) * 10.0 ** rng.uniform(-5, 0, (20_000, 1))
    for X in (far, near):
        assert problem(X).min() >= problem.best - 1e-7


@every
def test_a_local_search_from_the_optimum_stays(name: str) -> None:
    problem = PROBLEMS[name](3)
    result = minimize(problem, problem.optimum, method="Nelder-Mead")
    assert result.fun >= problem.best - 1e-6


@every
def test_rows_are_single_candidates(name: str) -> None:
    problem = PROBLEMS[name](5)
    X = np.random.default_rng(1).standard_normal((6, 5))
    before = X.copy()
    losses = problem(X)
    assert losses.shape == (6,)
    np.testing.assert_allclose(losses, [problem(x) for x in X], rtol=1e-12)
    np.testing.assert_array_equal(X, before)
    assert isinstance(problem(X[0]), float)


class TestAppendixB:
    """The paper's formulas, written out as loops."""

    X = np.random.default_rng(2).standard_normal((4, 6)) * 2.0

    def test_sphere(self) -> None:
        np.testing.assert_allclose(PROBLEMS["sphere"](6)(self.X), [x @ x for x in self.X])

    def test_rosenbrock_is_scipys(self) -> None:
        np.testing.assert_allclose(Rosenbrock(6)(self.X), [rosen(x) for x in self.X])

    def test_rastrigin(self) -> None:
        expected = [60 + sum(t**2 - 10 * math.cos(2 * math.pi * t) for t in x) for x in self.X]
        np.testing.assert_allclose(PROBLEMS["rastrigin"](6)(self.X), expected)

    def test_lunacek(self) -> None:
        n, mu1, d = 6, 2.5, 1.0
        s = 1 - 1 / (2 * math.sqrt(n + 20) - 8.2)
        mu2 = -math.sqrt((mu1**2 - d) / s)
        for x in self.X:
            basins = min(sum((t - mu1) ** 2 for t in x), d * n + s * sum((t - mu2) ** 2 for t in x))
            waves = 10 * sum(1 - math.cos(2 * math.pi * (t - mu1)) for t in x)
            assert Lunacek(n)(x) == pytest.approx(basins + waves)


def test_published_values() -> None:
    ones = np.ones(2)
    assert PROBLEMS["ackley"](2)(ones) == pytest.approx(3.6253849384403627)
    assert PROBLEMS["griewank"](2)(ones) == pytest.approx(0.5897380911762422)
    assert PROBLEMS["styblinski_tang"](2)(ones) == pytest.approx(-10.0)
    assert PROBLEMS["schwefel"](2)(np.zeros(2)) == pytest.approx(837.9658)
    assert PROBLEMS["levy"](2)(np.zeros(2)) == pytest.approx(
        0.5 + 0.0625 * (1 + 10 * math.sin(0.75 * math.pi + 1) ** 2) + 0.125
    )
    assert PROBLEMS["ellipsoid"](3)(np.ones(3)) == pytest.approx(1.0 + 1e3 + 1e6)


def test_ackley_keeps_its_digits_near_the_optimum() -> None:
    assert Ackley(5)(np.full(5, 1e-12)) == pytest.approx(4e-12, rel=1e-3)


def test_schwefel_is_bounded_below_outside_of_its_domain() -> None:
    assert PROBLEMS["schwefel"](2)([1e4, -1e4]) > 1e7
    smooth = PROBLEMS["schwefel"](1)
    assert check_grad(smooth, lambda x: np.array([2 * (x[0] - 500.0)]), np.array([600.0])) < 1e-3


def test_bad_input_is_named() -> None:
    with pytest.raises(InputError, match="problem: expected one of 'sphere'"):
        problem_from("spere", 3)
    with pytest.raises(InputError, match="dim: expected at least 1, got 0"):
        problem_from("sphere", 0)
    with pytest.raises(InputError, match=r"x: expected shape \(3,\) or \(k, 3\), got shape \(2,\)"):
        problem_from("sphere", 3)([0.0, 0.0])
