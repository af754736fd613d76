"""The quadratic model: exact on quadratics, the same in every frame, and trusted only as far as it predicts."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import random_belief
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

import cones
from cones import InputError
from cones.estimators import SHAPINGS, Quadratic, QuadraticModel, Sample
from cones.estimators.quadratic import rank_correlation
from cones.sampling import NoiseBlock, NoiseStream, Plan, Population


def learnt(loss, belief, iterations: int, popsize: int = 10, estimator: Quadratic | None = None):
    """The last estimate and state at a belief that stays where it is."""
    state, estimator = None, estimator or Quadratic(ridge=1e-9)
    for iteration in range(iterations):
        population = Population(belief, Plan(popsize), NoiseStream(3), iteration)
        losses = loss(np.asarray(population))
        utilities = SHAPINGS["recombination_weights"](losses)
        estimate, state = estimator.estimate(state, Sample(population, NoiseBlock(population), losses, utilities))
    return estimate, state


def bowl(n: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((n, n)), rng.standard_normal(n)
    H = A @ A.T
    return H, b, lambda X: 7.0 + X @ b + 0.5 * np.einsum("ij,jk,ik->i", X, H, X)


def test_a_quadratic_is_found_exactly() -> None:
    belief = random_belief("full", 4, 0)
    H, b, loss = bowl(4)
    estimate, _ = learnt(loss, belief, 8)
    model, L = estimate.model, belief.factor
    np.testing.assert_allclose(model.curvature, L.T @ H @ L, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model.gradient, L.T @ (b + H @ belief.mean), rtol=1e-4, atol=1e-4)
    assert model.constant == pytest.approx(loss(belief.mean[None])[0], rel=1e-5)
    assert model.minimum() == pytest.approx(7.0 - 0.5 * b @ np.linalg.solve(H, b), rel=1e-3, abs=1e-3)
    assert model.agreement > 0.9


def test_a_model_is_the_same_function_in_every_frame() -> None:
    one, other = random_belief("full", 5, 0), random_belief("full", 5, 1)
    rng = np.random.default_rng(2)
    A = rng.standard_normal((5, 5))
    model = QuadraticModel(one, 1.5, rng.standard_normal(5), A + A.T)
    X = rng.standard_normal((20, 5))
    moved = model.seen_from(other)
    np.testing.assert_allclose(moved.values(other.rows_to_frame(X)), model.values(one.rows_to_frame(X)), rtol=1e-9)
    np.testing.assert_allclose(moved.seen_from(one).curvature, model.curvature, rtol=1e-9, atol=1e-9)


def test_a_model_that_says_nothing_is_not_trusted() -> None:
    noise = np.random.default_rng(0)
    estimate, _ = learnt(lambda X: noise.standard_normal(len(X)), random_belief("full", 4, 0), 40)
    assert abs(estimate.model.agreement) < 0.5
    assert estimate.diagnostics["agreement"] == estimate.model.agreement


def test_there_is_no_model_before_there_are_enough_evaluations_nor_far_away() -> None:
    belief = random_belief("full", 6, 0)  # 28 numbers: from 17 evaluations on
    _, _, loss = bowl(6)
    assert learnt(loss, belief, 1)[0].model is None
    estimate, state = learnt(loss, belief, 2)
    assert estimate.model is not None
    far = cones.FullGaussian(belief.mean + 1e6, np.eye(6))
    population = Population(far, Plan(10), NoiseStream(3), 9)
    losses = loss(np.asarray(population))
    estimate, _ = Quadratic().estimate(state, Sample(population, NoiseBlock(population), losses, losses))
    assert estimate.model is None


def test_no_more_evaluations_are_kept_than_asked_for() -> None:
    belief = random_belief("full", 6, 0)
    _, state = learnt(bowl(6)[2], belief, 30, popsize=6, estimator=Quadratic(keep=2.0))
    assert len(state.losses) == len(state.candidates) == 56
    _, state = learnt(bowl(6)[2], belief, 2, popsize=600, estimator=Quadratic(keep=2.0))
    assert len(state.losses) == 400


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_failures_are_not_learnt_and_the_model_does_not_lead_beside_them(bad: float) -> None:
    belief = random_belief("full", 4, 0)
    _, _, loss = bowl(4)

    def fails(X: np.ndarray) -> np.ndarray:
        losses = loss(X)
        losses[3] = bad
        return losses

    estimate, state = learnt(fails, belief, 8)
    assert np.isfinite(state.losses).all()
    assert state.model is not None
    assert estimate.model is None


def test_many_dimensions_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="estimator: expected at most 64 dimensions for 'quadratic', got 65"):
        learnt(lambda X: (X**2).sum(axis=1), cones.FullGaussian(np.zeros(65), np.eye(65)), 1)
    with pytest.raises(InputError, match="keep"):
        Quadratic(keep=-1.0)


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(2, 40))
@settings(max_examples=50, deadline=None)
def test_the_rank_correlation_is_kendalls(seed: int, size: int) -> None:
    one, other = np.random.default_rng(seed).standard_normal((2, size))
    assert rank_correlation(one, other) == pytest.approx(kendalltau(one, other).statistic, abs=1e-12)


def test_units_of_the_loss_do_not_matter() -> None:
    belief = random_belief("full", 4, 0)
    _, _, loss = bowl(4)
    one = learnt(loss, belief, 6)[0].model
    for factor in (1e-200, 1e200):
        other = learnt(lambda X, c=factor: c * loss(X), belief, 6)[0].model
        np.testing.assert_allclose(other.curvature / factor, one.curvature, rtol=1e-6, atol=1e-9)
        assert other.agreement == one.agreement
