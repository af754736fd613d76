from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from helpers import random_belief, random_gradient
from hypothesis import given
from hypothesis import strategies as st

import cones
from cones import DiagonalGaussian, FullGaussian, Gradient, InputError, StepStatus
from cones.beliefs import encode


def linear_gain(belief, gradient: Gradient, new) -> float:
    return float(
        np.sum((new.mean - belief.mean) * gradient.mean)
        + np.sum((encode(new, "covariance") - encode(belief, "covariance")) * gradient.covariance)
    )


@pytest.mark.parametrize("kind", ["diagonal", "full"])
@given(dim=st.integers(1, 6), seed=st.integers(0, 10**6), log_radius=st.floats(-3, 2))
def test_the_step_is_what_it_reports(kind: str, dim: int, seed: int, log_radius: float) -> None:
    belief, gradient, radius = random_belief(kind, dim, seed), random_gradient(kind, dim, seed + 1), 10**log_radius
    step = cones.solve_step(belief, gradient, radius)
    assert step.status is StepStatus.OPTIMAL
    assert step.belief.kl(belief) == pytest.approx(radius**2, rel=1e-6)
    assert step.divergence == pytest.approx(radius**2, rel=1e-9)
    assert linear_gain(belief, gradient, step.belief) == pytest.approx(step.objective, rel=1e-6)


@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_no_belief_on_the_ball_gains_more(kind: str) -> None:
    belief, gradient = random_belief(kind, 3, 0), random_gradient(kind, 3, 1)
    step = cones.solve_step(belief, gradient, 1.0)
    for seed in range(300):
        other = cones.solve_step(belief, random_gradient(kind, 3, 100 + seed), 1.0).belief
        assert linear_gain(belief, gradient, other) <= step.objective * (1 + 1e-9)


def test_full_belief_with_diagonal_data_takes_the_diagonal_step() -> None:
    mean, variance = np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.0, 2.0])
    g, h = np.array([1.0, -1.0, 0.2]), np.array([0.3, -2.0, 1.0])
    one = cones.solve_step(DiagonalGaussian(mean, variance), Gradient(g, h), 2.0)
    other = cones.solve_step(FullGaussian(mean, np.diag(variance)), Gradient(g, np.diag(h)), 2.0)
    np.testing.assert_allclose(other.belief.mean, one.belief.mean, rtol=1e-9)
    np.testing.assert_allclose(other.belief.covariance, np.diag(one.belief.variance), atol=1e-9)
    assert other.multiplier == pytest.approx(one.multiplier, rel=1e-9)


def test_the_step_s_shift_and_ratio_lead_to_its_belief() -> None:
    for kind in ("diagonal", "full"):
        belief, gradient = random_belief(kind, 4, 6), random_gradient(kind, 4, 7)
        step = cones.solve_step(belief, gradient, 0.7)
        after, kl = belief.move(step)
        np.testing.assert_allclose(after.mean, belief.mean + step.shift)
        np.testing.assert_array_equal(after.mean, step.belief.mean)
        assert after.kl(step.belief) == pytest.approx(0.0, abs=1e-14)
        assert kl == pytest.approx(0.49, rel=1e-8)


def test_a_step_can_be_copied_and_pickled() -> None:
    step = cones.solve_step(random_belief("diagonal", 4, 6), random_gradient("diagonal", 4, 7), 0.7)
    for again in (pickle.loads(pickle.dumps(step)), copy.deepcopy(step)):
        np.testing.assert_array_equal(again.shift, step.shift)
        np.testing.assert_array_equal(again.belief.mean, step.belief.mean)
        assert again.status is step.status
        assert again.gap == step.gap


def test_mean_only_has_the_closed_form() -> None:
    step = cones.solve_step(DiagonalGaussian([0.0, 0.0], [1.0, 4.0]), Gradient([3.0, 2.0], [0.0, 0.0]), 0.5)
    a = np.array([3.0, 4.0])  # sigma * gradient, of length 5
    np.testing.assert_allclose(step.belief.mean, np.array([1.0, 2.0]) * a * np.sqrt(2) * 0.5 / 5.0, rtol=1e-9)
    np.testing.assert_allclose(step.belief.variance, [1.0, 4.0])


@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_zero_gradient_is_a_zero_step(kind: str) -> None:
    belief = random_belief(kind, 3, 0)
    zero = Gradient(np.zeros(3), np.zeros(3) if kind == "diagonal" else np.zeros((3, 3)))
    step = cones.solve_step(belief, zero, 1.0)
    assert step.status is StepStatus.ZERO_GRADIENT
    assert "zero" in step.status.value
    assert step.divergence == step.gap == step.multiplier == 0.0
    np.testing.assert_array_equal(step.belief.mean, belief.mean)
    assert step.belief.kl(belief) == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize("scale", [1e-150, 1e150, 1e300])
@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_scale_of_the_gradient_does_not_matter(kind: str, scale: float) -> None:
    belief, gradient = random_belief(kind, 4, 2), random_gradient(kind, 4, 3)
    scaled = Gradient(np.asarray(gradient.mean) * scale, np.asarray(gradient.covariance) * scale)
    one, other = cones.solve_step(belief, gradient, 5.0), cones.solve_step(belief, scaled, 5.0)
    assert other.belief.kl(one.belief) == pytest.approx(0.0, abs=1e-10)
    assert other.multiplier == pytest.approx(one.multiplier * scale, rel=1e-9)


@pytest.mark.parametrize("radius", [1.0, 10.0, 25.0])
@pytest.mark.parametrize("dim", [2, 10])
def test_full_belief_in_large_balls_with_negative_curvature(radius: float, dim: int) -> None:
    """The covariance shrinks by many orders of magnitude in one step, and the belief is still exact."""
    belief = random_belief("full", dim, 0)
    gradient = Gradient(np.zeros(dim), -belief.precision)
    step = cones.solve_step(belief, gradient, radius)
    assert step.divergence == pytest.approx(radius**2, rel=1e-9)
    assert step.belief.kl(belief) == pytest.approx(radius**2, rel=1e-6)
    v = np.ones(dim)
    np.testing.assert_allclose(step.belief.to_frame(step.belief.from_frame(v)), v, rtol=1e-6)
    assert np.isfinite(step.belief.entropy())


@pytest.mark.parametrize("variance", [1e-30, 1.0, 1e30])
def test_no_mean_part_and_a_multiplier_that_underflows(variance: float) -> None:
    step = cones.solve_step(DiagonalGaussian([5.0], variance), Gradient([0.0], [-1.0]), 30.0)
    np.testing.assert_array_equal(step.belief.mean, [5.0])
    assert step.status is StepStatus.OPTIMAL


def test_extreme_variances() -> None:
    belief = DiagonalGaussian([0.0, 0.0], [1e-200, 1e200])
    step = cones.solve_step(belief, Gradient([1e100, 1e-100], [1e200, 1e-200]), 1.0)
    assert step.status is StepStatus.OPTIMAL
    assert step.belief.kl(belief) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize(
    ("radius", "message"),
    [
        (0.0, "radius: expected a positive number, got 0.0"),
        (-1.0, "radius: expected a positive number"),
        (np.nan, "radius: expected a finite number, got nan"),
        (np.inf, "radius: expected a finite number"),
        ("wide", "radius: expected a number, got 'wide'"),
        ("3", "radius: expected a number, got '3'"),
        (1e155, "radius: expected a number between 1e-100 and 1e100"),
        (1e-200, "radius: expected a number between 1e-100 and 1e100"),
    ],
)
def test_bad_radius_is_named(radius: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        cones.solve_step(DiagonalGaussian([0.0], 1.0), Gradient([1.0], [1.0]), radius)


def test_bad_gradient_and_solver_are_named() -> None:
    belief = DiagonalGaussian([0.0, 0.0], 1.0)
    with pytest.raises(InputError, match=r"gradient.covariance: expected finite numbers, got nan at index \(1,\)"):
        cones.solve_step(belief, Gradient([1.0, 1.0], [1.0, np.nan]), 1.0)
    with pytest.raises(InputError, match=r"gradient.mean: expected finite numbers, got -inf"):
        cones.solve_step(belief, Gradient([-np.inf, 1.0], [1.0, 1.0]), 1.0)
    with pytest.raises(InputError, match=r"gradient: expected a cones\.Gradient, got tuple"):
        cones.solve_step(belief, ([1.0, 1.0], [1.0, 1.0]), 1.0)
    with pytest.raises(InputError, match="belief: expected a Gaussian, an exponential family or a product, got"):
        cones.solve_step([0.0, 0.0], Gradient([1.0, 1.0], [1.0, 1.0]), 1.0)
    with pytest.raises(InputError, match=r"solver: expected .*'clarabel'.*'dual'.* got 'duel'; did you mean dual\?"):
        cones.solve_step(belief, Gradient([1.0, 1.0], [1.0, 1.0]), 1.0, solver="duel")
    with pytest.raises(InputError, match=r"gradient.covariance: expected shape \(2,\), got shape \(2, 2\)"):
        cones.solve_step(belief, Gradient([1.0, 1.0], np.eye(2)), 1.0)
