"""The step of MORE beside a cone program, and its certificate."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cones import StepStatus
from cones.beliefs import DiagonalMatrix, FrameGradient, SpectralMatrix
from cones.steps.more import MoreLagrangian, solve_more


def problem(n: int, seed: int, rank: int | None = None) -> tuple[np.ndarray, np.ndarray, FrameGradient]:
    """g and H of a model, and the gradient a = g, B = H / 2."""
    rng = np.random.default_rng(seed)
    g, A = rng.standard_normal(n), rng.standard_normal((n, n))
    values, basis = np.linalg.eigh(A + A.T)
    rank = n if rank is None else rank
    matrix = SpectralMatrix(0.5 * values[:rank], basis[:, :rank], 0.0 if rank == n else 0.3)
    return g, 2.0 * matrix.dense(), FrameGradient(g, matrix)


def moved(step) -> tuple[np.ndarray, np.ndarray]:
    """m and R of the descent."""
    values, basis = np.linalg.eigh(-step.log_ratio.dense())
    return -step.shift, (basis * np.exp(values)) @ basis.T


def kl(m: np.ndarray, R: np.ndarray) -> float:
    return 0.5 * float(m @ m + np.trace(R) - len(m) - np.linalg.slogdet(R).logabsdet)


@pytest.mark.parametrize(("radius", "loss"), [(0.7, 0.05), (0.7, 5.0), (2.0, 0.0), (2.0, 0.4)])
def test_no_program_in_the_moments_gains_more(radius: float, loss: float) -> None:
    cp = pytest.importorskip("cvxpy")
    n = 3
    g, H, gradient = problem(n, 1)
    block = cp.Variable((n + 1, n + 1), symmetric=True)  # [[M, m], [m^T, 1]], whose determinant is that of R
    m, M = block[:n, n], block[:n, :n]
    divergence = 0.5 * (cp.trace(M) - n - cp.log_det(block))
    limits = [block[n, n] == 1.0, divergence <= radius**2, 0.5 * cp.log_det(block) >= -loss]
    program = cp.Problem(cp.Minimize(g @ m + 0.5 * cp.trace(H @ (M - np.eye(n)))), limits)
    program.solve(solver="CLARABEL")
    step = solve_more(gradient, radius, loss)
    assert step.status is StepStatus.OPTIMAL
    assert step.objective == pytest.approx(-program.value, rel=1e-5)
    np.testing.assert_allclose(-step.shift, m.value, atol=1e-3)


@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(1, 10), log_radius=st.floats(-3.0, 1.0), loss=st.floats(0.0, 3.0),
    missing=st.integers(0, 5),
)  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_the_step_is_feasible_and_what_it_reports(
    seed: int, n: int, log_radius: float, loss: float, missing: int
) -> None:
    g, H, gradient = problem(n, seed, max(n - missing, 1))
    radius = 10.0**log_radius
    step = solve_more(gradient, radius, loss)
    m, R = moved(step)
    assert step.status is StepStatus.OPTIMAL
    assert kl(m, R) <= radius**2 * (1.0 + 1e-6) + 1e-12
    assert 0.5 * np.linalg.slogdet(R).logabsdet >= -loss - 1e-9 * n
    gain = -(g @ m + 0.5 * np.trace(H @ (R - np.eye(n))) + 0.5 * m @ H @ m)
    assert step.objective == pytest.approx(gain, rel=1e-5, abs=1e-8)
    assert gain > 0.0
    assert abs(step.gap) <= 1e-6 * max(1.0, gain)


@pytest.mark.parametrize("loss", [0.0, 0.3, 50.0])
def test_the_slope_is_the_derivative(loss: float) -> None:
    _, _, gradient = problem(6, 2)
    lagrangian = MoreLagrangian(gradient, 1.0, loss, 1.0)
    for u in (-3.0, 0.0, 2.0):
        difference = (lagrangian.at(u + 1e-5).divergence - lagrangian.at(u - 1e-5).divergence) / 2e-5
        assert lagrangian.at(u).slope == pytest.approx(difference, rel=1e-5)


def test_a_diagonal_is_a_full_matrix_with_the_axes_as_basis() -> None:
    rng = np.random.default_rng(0)
    g, b = rng.standard_normal(5), rng.standard_normal(5)
    one = solve_more(FrameGradient(g, DiagonalMatrix(b)), 0.8, 0.2)
    other = solve_more(FrameGradient(g, SpectralMatrix(b, np.eye(5))), 0.8, 0.2)
    np.testing.assert_allclose(one.shift, other.shift, rtol=1e-9)
    np.testing.assert_allclose(one.log_ratio.dense(), other.log_ratio.dense(), rtol=1e-9)


def test_a_bowl_around_the_mean_may_only_shrink_by_the_entropy() -> None:
    """Without a slope the ball is not reached: all that happens is the bound on the entropy, spread evenly."""
    step = solve_more(FrameGradient(np.zeros(4), DiagonalMatrix(np.full(4, 2.0))), 3.0, 0.1)
    np.testing.assert_allclose(-step.log_ratio.values, np.full(4, -0.05), rtol=1e-6)
    assert step.divergence < 9.0
    assert not step.shift.any()


def test_what_is_not_finite_fails_and_zero_is_zero() -> None:
    zero = solve_more(FrameGradient(np.zeros(3), DiagonalMatrix(np.zeros(3))), 1.0, 1.0)
    assert zero.status is StepStatus.ZERO_GRADIENT
    broken = solve_more(FrameGradient(np.array([math.inf, 0.0, 0.0]), DiagonalMatrix(np.zeros(3))), 1.0, 1.0)
    assert broken.status is StepStatus.FAILED
