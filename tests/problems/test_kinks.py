from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from cones.problems import L1Norm, MaxNorm, Problem, TotalVariation, WeightedL1, problem_from
from cones.types import Vector

DIMS = pytest.mark.parametrize("dim", [2, 3, 7, 30, 50])


def test_losses_written_out_as_loops() -> None:
    for x in np.random.default_rng(0).standard_normal((5, 6)):
        assert MaxNorm(6)(x) == max(abs(t) for t in x)
        assert L1Norm(6)(x) == pytest.approx(sum(abs(t) for t in x))
        assert WeightedL1(6)(x) == pytest.approx(sum(10 ** (0.4 * i) * abs(t) for i, t in enumerate(x)))
        signal = [-2, -2, -2, 2, 2, 2]
        fit = sum((t - y) ** 2 for t, y in zip(x, signal, strict=True)) / 2
        jumps = sum(abs(x[i + 1] - x[i]) for i in range(5))
        assert TotalVariation(6)(x) == pytest.approx(fit + jumps)


@DIMS
def test_total_variation_has_the_optimum_that_a_convex_solver_finds(dim: int) -> None:
    problem = TotalVariation(dim)
    x = cp.Variable(dim)
    convex = cp.Problem(cp.Minimize(cp.sum_squares(x - problem.signal) / 2 + cp.tv(x)))
    convex.solve(solver=cp.CLARABEL)
    assert problem.best == pytest.approx(convex.value, abs=1e-7)
    np.testing.assert_allclose(problem.optimum, x.value, atol=1e-4)


@DIMS
def test_total_variation_has_a_dual_certificate(dim: int) -> None:
    """x = y - D^T z with |z| <= 1, and z = sign(D x) where D x is not 0, is optimal."""
    problem = TotalVariation(dim)
    z = -np.cumsum(problem.signal - problem.optimum)[:-1]  # D^T z = y - x
    differences = np.diff(problem.optimum)
    assert (np.abs(z) <= 1.0 + 1e-12).all()
    jumps = np.abs(differences) > 1e-12
    assert jumps.sum() == 1
    np.testing.assert_allclose(z[jumps], np.sign(differences[jumps]))


@pytest.mark.parametrize("name", ["max_norm", "l1_norm", "weighted_l1", "total_variation"])
def test_a_rotation_and_a_shift_keep_the_minimum_and_the_kinks(name: str) -> None:
    problem = problem_from(name, 6, rotation=1, shift=3.0)
    assert problem(problem.optimum) == pytest.approx(problem.best, abs=1e-12)
    basis = np.linalg.qr(np.random.default_rng(2).standard_normal((6, 6)))[0]
    plain = problem_from(name, 6)
    for direction in basis:
        assert _kink(plain, plain.optimum, direction) > 0.01
        assert _kink(problem, problem.optimum, direction) > 0.01


def _kink(problem: Problem, x: Vector, direction: Vector, length: float = 1e-6) -> float:
    """The jump of the slope at x along a direction; 0 for a function that is differentiable there."""
    ahead, there, behind = (problem(x + step * direction) for step in (length, 0.0, -length))
    return float((ahead - 2.0 * there + behind) / length)


def test_rotated_l1_is_the_norm_of_a_rotated_vector() -> None:
    problem = problem_from("l1_norm", 5, rotation=4, shift=3.0)
    columns = np.stack([problem_from("l1_norm", 5, rotation=4).rotation[:, i] for i in range(5)], axis=1)  # type: ignore[attr-defined]
    x = np.random.default_rng(3).standard_normal(5)
    expected = sum(abs(float(row @ (x - 3.0))) for row in columns)
    assert problem(x) == pytest.approx(expected)
    np.testing.assert_allclose(columns.T @ columns, np.eye(5), atol=1e-12)
