"""The step problem linear in the moments, beside a cone program and its own limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cones import Step, StepStatus
from cones.beliefs import FrameGradient, SpectralMatrix
from cones.divergences import KL, Ball
from cones.divergences.moments import MomentsLagrangian
from cones.solvers import Dual


def solve_moments(gradient: FrameGradient, radius: float) -> Step:
    with np.errstate(all="ignore"):
        return Dual().solve(gradient, Ball(KL(), radius, "mean_parameters"))


def problem(n: int, seed: int, convex: bool = False) -> tuple[np.ndarray, np.ndarray, FrameGradient]:
    rng = np.random.default_rng(seed)
    a, A = rng.standard_normal(n), rng.standard_normal((n, n))
    B = -A @ A.T if convex else A + A.T
    values, basis = np.linalg.eigh(B)
    return a, B, FrameGradient(a, SpectralMatrix(values, basis))


def kl(m: np.ndarray, R: np.ndarray) -> float:
    return 0.5 * float(m @ m + np.trace(R) - len(m) - np.linalg.slogdet(R).logabsdet)


def ratio(step) -> np.ndarray:
    logs = step.log_ratio
    return (logs.basis * np.exp(logs.values)) @ logs.basis.T


@pytest.mark.parametrize("radius", [0.3, 1.5])
@pytest.mark.parametrize("seed", range(3))
def test_no_program_in_the_moments_gains_more(radius: float, seed: int) -> None:
    """With M = R + m m^T the program is convex: KL = (tr M - n - log det(M - m m^T)) / 2, a Schur complement."""
    cp = pytest.importorskip("cvxpy")
    n = 3
    a, B, gradient = problem(n, seed)
    block = cp.Variable((n + 1, n + 1), symmetric=True)  # [[M, m], [m^T, 1]], whose determinant is that of R
    m, M = block[:n, n], block[:n, :n]
    divergence = 0.5 * (cp.trace(M) - n - cp.log_det(block))
    program = cp.Problem(
        cp.Maximize(a @ m + cp.trace(B @ (M - np.eye(n)))), [block[n, n] == 1.0, divergence <= radius**2]
    )
    program.solve(solver="CLARABEL")
    step = solve_moments(gradient, radius)
    assert step.status is StepStatus.OPTIMAL
    assert step.objective == pytest.approx(program.value, rel=1e-5)
    np.testing.assert_allclose(step.shift, m.value, atol=1e-3)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 12), log_radius=st.floats(-4.0, 1.5), convex=st.booleans())
@settings(max_examples=80, deadline=None)
def test_the_step_is_on_the_boundary_and_is_what_it_reports(seed: int, n: int, log_radius: float, convex: bool) -> None:
    a, B, gradient = problem(n, seed, convex)
    radius = 10.0**log_radius
    step = solve_moments(gradient, radius)
    R = ratio(step)
    assert step.status is StepStatus.OPTIMAL
    assert kl(step.shift, R) == pytest.approx(radius**2, rel=1e-4, abs=1e-12)
    gain = a @ step.shift + np.sum(B * (R - np.eye(n) + np.outer(step.shift, step.shift)))
    assert gain == pytest.approx(step.objective, rel=1e-6, abs=1e-9)
    assert 0.0 <= step.gap <= 1e-8 * max(step.objective, 1e-12) + 1e-12


def test_a_small_ball_has_the_natural_gradient_and_a_large_one_newtons_step() -> None:
    a, B, gradient = problem(4, 1, convex=True)
    small = solve_moments(gradient, 1e-6).shift
    assert small @ a > 0.999999 * np.linalg.norm(small) * np.linalg.norm(a)
    large = solve_moments(gradient, 12.0)
    np.testing.assert_allclose(large.shift, -np.linalg.solve(2.0 * B, a), rtol=1e-2)


def test_units_do_not_matter_and_zero_is_zero() -> None:
    a, _, gradient = problem(4, 2)
    one = solve_moments(gradient, 0.7)
    for factor in (1e-150, 1e150):
        scaled = FrameGradient(factor * a, gradient.covariance.map(lambda values, c=factor: c * values))
        np.testing.assert_allclose(solve_moments(scaled, 0.7).shift, one.shift, rtol=1e-9)
    zero = solve_moments(FrameGradient(0.0 * a, gradient.covariance.map(np.zeros_like)), 0.7)
    assert zero.status is StepStatus.ZERO_GRADIENT
    assert not zero.shift.any()


def test_its_slope_is_that_of_its_divergence() -> None:
    _, _, gradient = problem(5, 3)
    lagrangian = MomentsLagrangian(gradient, 1.0, 3.0)
    low, _, high = lagrangian.bracket()
    for u in np.linspace(low, high, 9):
        h = 1e-5
        difference = (lagrangian.at(u + h).divergence - lagrangian.at(u - h).divergence) / (2 * h)
        assert lagrangian.at(u).slope == pytest.approx(difference, rel=1e-4)


@pytest.mark.parametrize("scale", [1e-300, 1e250, 1e300])
def test_the_scale_of_the_gradient_does_not_matter(scale: float) -> None:
    """Losses of 1e280 have gradients whose squares overflow."""
    mean, values, basis = np.array([1.0, -2.0, 0.5]), np.array([-1.0, -0.3, 0.7]), np.eye(3)
    with np.errstate(all="ignore"):
        one = solve_moments(FrameGradient(mean, SpectralMatrix(values, basis)), 0.8)
        other = solve_moments(FrameGradient(scale * mean, SpectralMatrix(scale * values, basis)), 0.8)
    np.testing.assert_allclose(other.shift, one.shift, rtol=1e-9)
    np.testing.assert_allclose(other.log_ratio.values, one.log_ratio.values, rtol=1e-9)


def test_a_gradient_that_is_not_finite_gives_no_step() -> None:
    gradient = FrameGradient(np.array([np.inf, 1.0]), SpectralMatrix(np.array([1.0, 2.0]), np.eye(2)))
    assert solve_moments(gradient, 1.0).status is StepStatus.FAILED
