"""The estimate against closed-form gradients of linear and quadratic losses."""

import numpy as np
import pytest
from helpers import random_belief

from cones.gradients import score_function
from cones.noise import AntitheticNoise, IndependentNoise

DIM, POPSIZE = 4, 400_000


@pytest.mark.parametrize("kind", ["diagonal", "full"])
@pytest.mark.parametrize("noise_kind", [AntitheticNoise, IndependentNoise])
@pytest.mark.parametrize("loss", ["linear", "quadratic"])
def test_estimate_converges_to_the_gradient_of_the_expected_loss(kind: str, noise_kind, loss: str) -> None:
    belief = random_belief(kind, DIM, 0)
    rng = np.random.default_rng(1)
    c, A = rng.standard_normal(DIM), rng.standard_normal((DIM, DIM))
    A = 0.5 * (A + A.T) * (loss == "quadratic")
    noise = noise_kind(2, POPSIZE)
    rows = noise.draw(0, DIM)
    X = noise.candidates(belief, rows)
    losses = X @ c + np.einsum("ij,jk,ik->i", X, A, X)

    # E[c x + x A x] = c mu + mu A mu + tr(A Sigma)
    L = np.column_stack([belief.from_frame(e) for e in np.eye(DIM)])
    expected_a = L.T @ (c + 2.0 * A @ belief.mean)
    expected_B = L.T @ A @ L
    if kind == "diagonal":
        expected_B = np.diag(np.diag(expected_B))
    estimate = score_function(belief, noise, rows, losses - losses.mean())
    scale = losses.std()
    np.testing.assert_allclose(estimate.mean, expected_a, atol=6 * scale / np.sqrt(POPSIZE))
    np.testing.assert_allclose(estimate.covariance.dense(), expected_B, atol=9 * scale / np.sqrt(POPSIZE))


def test_estimate_is_the_sum_that_the_formula_says() -> None:
    belief = random_belief("full", 6, 3)
    noise = AntitheticNoise(4, 8)  # rank 4 < 6 dimensions
    rows = noise.draw(0, 6)
    z = np.concatenate([rows, -rows])
    u = np.random.default_rng(5).standard_normal(8)
    estimate = score_function(belief, noise, rows, u)
    np.testing.assert_allclose(estimate.mean, sum(u[i] * z[i] for i in range(8)) / 8, atol=1e-14)
    B = sum(u[i] * (np.outer(z[i], z[i]) - np.eye(6)) for i in range(8)) / 16
    np.testing.assert_allclose(estimate.covariance.dense(), B, atol=1e-13)
    assert estimate.covariance.basis.shape == (6, 4)


def test_diagonal_estimate_is_the_diagonal_of_the_full_one() -> None:
    noise = IndependentNoise(4, 9)
    rows = noise.draw(0, 5)
    u = np.random.default_rng(5).standard_normal(9)
    diagonal = score_function(random_belief("diagonal", 5, 0), noise, rows, u)
    full = score_function(random_belief("full", 5, 0), noise, rows, u)
    np.testing.assert_allclose(diagonal.covariance.values, np.diag(full.covariance.dense()), atol=1e-13)
    np.testing.assert_array_equal(diagonal.mean, full.mean)
