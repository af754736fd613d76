"""The estimate against closed-form gradients of linear and quadratic losses."""

import numpy as np
import pytest
from helpers import random_belief

from cones import DiagonalGaussian
from cones.estimators import score_function
from cones.sampling import AntitheticNoise, IndependentNoise, Rows

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
    rows = Rows(noise, 0, DIM)
    X = noise.candidates(belief, 0, 0, noise.rows)
    losses = X @ c + np.einsum("ij,jk,ik->i", X, A, X)

    # E[c x + x A x] = c mu + mu A mu + tr(A Sigma)
    L = np.column_stack([belief.from_frame(e) for e in np.eye(DIM)])
    expected_a = L.T @ (c + 2.0 * A @ belief.mean)
    expected_B = L.T @ A @ L
    if kind == "diagonal":
        expected_B = np.diag(np.diag(expected_B))
    estimate = score_function(belief, rows, losses - losses.mean())
    scale = losses.std()
    np.testing.assert_allclose(estimate.mean, expected_a, atol=6 * scale / np.sqrt(POPSIZE))
    np.testing.assert_allclose(estimate.covariance.dense(), expected_B, atol=9 * scale / np.sqrt(POPSIZE))


def test_estimate_is_the_sum_that_the_formula_says() -> None:
    belief = random_belief("full", 6, 3)
    noise = AntitheticNoise(4, 8)  # rank 4 < 6 dimensions
    drawn = noise.draw(0, 6)
    z = np.repeat(drawn, 2, axis=0) * np.tile([1.0, -1.0], 4)[:, None]
    u = np.random.default_rng(5).standard_normal(8)
    estimate = score_function(belief, Rows(noise, 0, 6, drawn), u)
    np.testing.assert_allclose(estimate.mean, sum(u[i] * z[i] for i in range(8)) / 8, atol=1e-14)
    B = sum(u[i] * (np.outer(z[i], z[i]) - np.eye(6)) for i in range(8)) / 16
    np.testing.assert_allclose(estimate.covariance.dense(), B, atol=1e-13)
    assert estimate.covariance.basis.shape == (6, 4)


def test_diagonal_estimate_is_the_diagonal_of_the_full_one() -> None:
    noise = IndependentNoise(4, 9)
    rows = Rows(noise, 0, 5)
    u = np.random.default_rng(5).standard_normal(9)
    diagonal = score_function(random_belief("diagonal", 5, 0), rows, u)
    full = score_function(random_belief("full", 5, 0), rows, u)
    np.testing.assert_allclose(diagonal.covariance.values, np.diag(full.covariance.dense()), atol=1e-13)
    np.testing.assert_allclose(diagonal.mean, full.mean, atol=1e-15)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("dim", [3, 8192, 8193, 20_000])
@pytest.mark.parametrize("noise_kind", [AntitheticNoise, IndependentNoise])
def test_noise_that_is_drawn_again_gives_the_same_bits(dim: int, noise_kind, dtype: str, monkeypatch) -> None:
    noise = noise_kind(1, 22, dtype)
    belief = DiagonalGaussian(np.zeros(dim), 1.0).as_type(dtype)
    u = np.random.default_rng(5).standard_normal(22)
    kept = np.empty((noise.rows, dim), dtype)
    noise.candidates(belief, 7, 0, noise.rows, kept)
    results = []
    for threads in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        results += [score_function(belief, Rows(noise, 7, dim, rows), u) for rows in (kept, None)]
    odd, even = noise.fold(u / 22)
    np.testing.assert_allclose(results[0].mean, odd @ kept, atol=2e-6 if dtype == "float32" else 1e-14)
    expected = 0.5 * (even @ kept.astype(float) ** 2 - even.sum())
    np.testing.assert_allclose(results[0].covariance.values, expected, atol=1e-5 if dtype == "float32" else 1e-13)
    assert results[0].mean.dtype == dtype
    for other in results[1:]:
        np.testing.assert_array_equal(other.mean, results[0].mean)
        np.testing.assert_array_equal(other.covariance.values, results[0].covariance.values)
