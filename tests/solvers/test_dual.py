"""The scalar dual against a slow solution in 80 digits, and at the edges of what floats hold."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cones import Step, StepStatus
from cones.beliefs import DiagonalMatrix, FrameGradient
from cones.divergences import KL, Ball
from cones.divergences.kl import dual_value
from cones.solvers import Dual

mp.mp.dps = 80


def solve_dual(a: float | np.ndarray, b: np.ndarray, radius: float) -> Step:
    """The step for a gradient of the mean, or for one of this length: only its length matters."""
    return Dual().solve(FrameGradient(np.atleast_1d(a), DiagonalMatrix(b)), Ball(KL(), radius))


def slow_solution(a: list[float], b: list[float], radius: float) -> tuple[mp.mpf, list[mp.mpf], mp.mpf]:
    """Multiplier, ratios and objective by bisection in u = log(multiplier - smallest multiplier)."""
    A, B, energy = [mp.mpf(x) for x in a], [mp.mpf(x) for x in b], mp.mpf(radius) ** 2
    least = max(mp.mpf(0), 2 * max(B))

    def ratios_at(u: mp.mpf) -> list[mp.mpf]:
        # 1 / (1 - t) with 1 - t = (excess + least - 2 b) / multiplier, exact where t is close to 1
        return [(least + mp.exp(u)) / (mp.exp(u) + (least - 2 * x)) for x in B]

    def phi(u: mp.mpf) -> mp.mpf:
        mean = sum((x / (least + mp.exp(u))) ** 2 for x in A)
        return (mean + sum(r - 1 - mp.log(r) for r in ratios_at(u))) / 2

    low, high = mp.mpf(-2000), mp.mpf(2000)
    for _ in range(300):
        u = (low + high) / 2
        low, high = (u, high) if phi(u) > energy else (low, u)
    multiplier, ratios = least + mp.exp(high), ratios_at(high)
    objective = sum(x * x / multiplier for x in A) + sum(x * (r - 1) for x, r in zip(B, ratios, strict=True))
    return multiplier, ratios, objective


numbers = st.floats(-1.0, 1.0, allow_subnormal=False) | st.sampled_from([0.0, 1e-12, -1e-12, 1.0, -1.0])
vectors = st.integers(1, 5).flatmap(lambda n: st.tuples(*[st.lists(numbers, min_size=n, max_size=n)] * 2))
radii = st.floats(-6.0, 6.0).map(lambda exponent: 10.0**exponent)


@given(ab=vectors, radius=radii, exponent=st.integers(-150, 150))
@example(ab=([0.0], [1.0]), radius=1e6, exponent=0)
@example(ab=([0.0, 0.0], [1.0, 1.0]), radius=1e6, exponent=0)
@example(ab=([1e-12], [1.0]), radius=1e-6, exponent=150)
@example(ab=([1.0, 0.0], [-1.0, 1e-12]), radius=1e3, exponent=-150)
@settings(max_examples=150)
def test_against_eighty_digits(ab: tuple[list[float], list[float]], radius: float, exponent: int) -> None:
    scale = 10.0**exponent
    a, b = np.array(ab[0]) * scale, np.array(ab[1]) * scale
    point = solve_dual(a, b, radius)
    if not a.any() and not b.any():
        assert point.status is StepStatus.ZERO_GRADIENT
        assert point.multiplier == point.divergence == point.objective == point.gap == 0.0
        return
    assert point.status is StepStatus.OPTIMAL
    multiplier, ratios, objective = slow_solution(list(a), list(b), radius)
    assert point.divergence <= radius**2
    assert 0.0 <= point.gap <= 1e-9 * point.objective
    assert point.objective == pytest.approx(float(objective), rel=1e-9)
    if point.divergence < 0.99 * radius**2:  # the ball is inactive in floating point: the rest is below its resolution
        assert float(multiplier) <= 1e-280 * scale
        return
    assert point.multiplier == pytest.approx(float(multiplier), rel=1e-8)
    np.testing.assert_allclose(point.shift, [float(mp.mpf(x) / multiplier) for x in a], rtol=1e-8, atol=1e-300)
    np.testing.assert_allclose(point.log_ratio.values, [float(mp.log(r)) for r in ratios], rtol=1e-7, atol=1e-9)


@given(ab=vectors, radius=st.floats(0.01, 100.0))
@settings(max_examples=50)
def test_gap_is_the_dual_bound_minus_the_objective(ab: tuple[list[float], list[float]], radius: float) -> None:
    """The reported gap uses an identity; here it is D - P from their definitions, in 80 digits."""
    a, b = ab
    if not any(a) and not any(b):
        return
    point = solve_dual(float(np.linalg.norm(a)), np.array(b), radius)
    multiplier = mp.mpf(point.multiplier)
    t = [2 * mp.mpf(x) / multiplier for x in b]
    if max(t) >= 1:
        return  # the multiplier, as a float, is the pole: its distance from it is known to the solver only
    bound = multiplier * mp.mpf(radius) ** 2 + sum(mp.mpf(x) ** 2 for x in a) / (2 * multiplier)
    bound += multiplier / 2 * sum(-x - mp.log(1 - x) for x in t)
    primal = sum(mp.mpf(x) ** 2 for x in a) / multiplier + sum(
        mp.mpf(x) * (mp.exp(mp.mpf(float(log))) - 1) for x, log in zip(b, point.log_ratio.values, strict=True)
    )
    assert float(bound - primal) == pytest.approx(point.gap, abs=1e-9 * point.objective)
    assert dual_value(float(np.linalg.norm(a)), np.array(b), radius, point.multiplier) == pytest.approx(
        float(bound), rel=1e-9
    )


def test_dual_value_is_infinite_where_the_lagrangian_is_unbounded() -> None:
    assert dual_value(1.0, np.array([1.0, -1.0]), 1.0, 2.0) == math.inf
    assert dual_value(1.0, np.array([-1.0]), 1.0, 0.0) == math.inf


def hard_case(kind: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    a, b = rng.standard_normal(n), rng.standard_normal(n)
    if kind == "dominating":
        b[0] = 1e8
    elif kind == "negative":
        b = -np.abs(b)
    elif kind == "no mean":
        a[:] = 0.0
    elif kind == "no covariance":
        b[:] = 0.0
    elif kind == "heavy tails":
        b = np.sign(b) * np.exp(20.0 * rng.standard_normal(n))
    elif kind == "negative, no mean":
        a[:], b = 0.0, -np.abs(b)
    elif kind == "equal":
        a, b = 1e-8 * a, np.ones(n)
    return a, b


HARD = ["gaussian", "dominating", "negative", "no mean", "no covariance", "heavy tails", "negative, no mean", "equal"]


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("n", [1, 2, 10, 1000, 10**6])
def test_never_fails_on_finite_input(kind: str, n: int) -> None:
    rng = np.random.default_rng(n)
    a, b = hard_case(kind, n, rng)
    norm = float(np.linalg.norm(a))
    for radius in 10.0 ** np.arange(-6, 7, 3 if n == 10**6 else 1):
        for scale in (1e-150, 1.0, 1e150):
            point = solve_dual(norm * scale, b * scale, float(radius))
            assert point.status is StepStatus.OPTIMAL
            assert point.divergence <= radius**2
            assert 0.0 <= point.gap <= 1e-9 * point.objective
            assert np.isfinite(point.log_ratio.values).all()
            assert point.iterations <= 60


def test_the_mean_may_be_a_vector_or_absent() -> None:
    a, b = hard_case("gaussian", 30, np.random.default_rng(3))
    whole = solve_dual(a, b, 2.0)
    short = solve_dual(float(np.linalg.norm(a)), b, 2.0)
    np.testing.assert_allclose(whole.log_ratio.values, short.log_ratio.values, rtol=1e-12)
    np.testing.assert_allclose(whole.shift, short.shift * a / np.linalg.norm(a), rtol=1e-12)
    without, zero = (solve_dual(mean, b, 2.0) for mean in (a[:0], 0.0 * a))
    assert without.shift.size == 0
    np.testing.assert_array_equal(without.log_ratio.values, zero.log_ratio.values)


def test_step_does_not_depend_on_the_scale_of_the_gradient() -> None:
    rng = np.random.default_rng(0)
    a, b = hard_case("gaussian", 50, rng)
    norm = float(np.linalg.norm(a))
    one, other = solve_dual(norm, b, 3.0), solve_dual(norm * 2.0**400, b * 2.0**400, 3.0)
    np.testing.assert_array_equal(one.log_ratio.values, other.log_ratio.values)
    assert other.multiplier == one.multiplier * 2.0**400


@pytest.mark.parametrize("n", [50, 5000, 20000])
@pytest.mark.parametrize("radius", [0.1, 1.0, 10.0**0.5, 10.0, 100.0])
def test_few_evaluations(n: int, radius: float) -> None:
    """Newton's method needs five in some of these: a wrong second derivative shows in the number alone."""
    a, b = hard_case("gaussian", n, np.random.default_rng(n))
    assert solve_dual(float(np.linalg.norm(a)), b, radius).iterations <= 4
