"""The estimate against closed-form gradients of linear and quadratic losses."""

import numpy as np
import pytest
from helpers import random_belief, sample_of, signed_noise

from cones import DiagonalGaussian
from cones.estimators import NoiseLevel, Sample
from cones.estimators.score_function import ScoreFunction, score_function
from cones.sampling import NoiseBlock, NoiseStream, Plan, Population

DIM, POPSIZE = 4, 400_000
plans = pytest.mark.parametrize("mirrored", [True, False], ids=["pairs", "independent"])


@pytest.mark.parametrize("kind", ["diagonal", "full"])
@plans
@pytest.mark.parametrize("loss", ["linear", "quadratic"])
def test_estimate_converges_to_the_gradient_of_the_expected_loss(kind: str, mirrored: bool, loss: str) -> None:
    belief = random_belief(kind, DIM, 0)
    rng = np.random.default_rng(1)
    c, A = rng.standard_normal(DIM), rng.standard_normal((DIM, DIM))
    A = 0.5 * (A + A.T) * (loss == "quadratic")
    population = Population(belief, Plan(POPSIZE, mirrored), NoiseStream(2), 0)
    X = np.asarray(population)
    losses = X @ c + np.einsum("ij,jk,ik->i", X, A, X)

    # E[c x + x A x] = c mu + mu A mu + tr(A Sigma)
    L = np.column_stack([belief.from_frame(e) for e in np.eye(DIM)])
    expected_a = L.T @ (c + 2.0 * A @ belief.mean)
    expected_B = L.T @ A @ L
    if kind == "diagonal":
        expected_B = np.diag(np.diag(expected_B))
    gradient = score_function(Sample(population, NoiseBlock(population), losses, losses - losses.mean())).gradient
    scale = losses.std()
    np.testing.assert_allclose(gradient.mean, expected_a, atol=6 * scale / np.sqrt(POPSIZE))
    np.testing.assert_allclose(gradient.covariance.dense(), expected_B, atol=9 * scale / np.sqrt(POPSIZE))


def test_estimate_is_the_sum_that_the_formula_says() -> None:
    u = np.random.default_rng(5).standard_normal(8)
    sample = sample_of(random_belief("full", 6, 3), Plan(8, mirrored=True), u, seed=4)  # rank 4 < 6 dimensions
    z = signed_noise(sample.population)
    gradient = score_function(sample).gradient
    np.testing.assert_allclose(gradient.mean, sum(u[i] * z[i] for i in range(8)) / 8, atol=1e-14)
    B = sum(u[i] * (np.outer(z[i], z[i]) - np.eye(6)) for i in range(8)) / 16
    np.testing.assert_allclose(gradient.covariance.dense(), B, atol=1e-13)
    assert gradient.covariance.basis.shape == (6, 4)


def test_noise_level_and_samples_are_those_of_the_docstring() -> None:
    u = np.array([3.0, -1.0, 2.0, 0.5, -2.0, 1.0])
    for kind, freedom in (("diagonal", 7), ("full", 28)):
        estimate, state = ScoreFunction().estimate(None, sample_of(random_belief(kind, 7, 0), Plan(6), u))
        square = np.mean(u**2)
        expected = NoiseLevel(*np.sqrt([square * 7 / 6, square * 7 / 12, square * (freedom - 1) / 12]))
        for part in ("mean", "scale", "shape"):
            assert getattr(estimate.noise, part) == pytest.approx(getattr(expected, part))
        assert estimate.effective_samples == 6
        assert state is None


def test_diagonal_estimate_is_the_diagonal_of_the_full_one() -> None:
    u = np.random.default_rng(5).standard_normal(9)
    diagonal, full = (
        score_function(sample_of(random_belief(kind, 5, 0), Plan(9), u, seed=4)).gradient
        for kind in ("diagonal", "full")
    )
    np.testing.assert_allclose(diagonal.covariance.values, np.diag(full.covariance.dense()), atol=1e-13)
    np.testing.assert_allclose(diagonal.mean, full.mean, atol=1e-15)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("dim", [3, 8192, 8193, 20_000])
@plans
def test_noise_that_is_drawn_again_gives_the_same_bits(dim: int, mirrored: bool, dtype: str, monkeypatch) -> None:
    belief = DiagonalGaussian(np.zeros(dim), 1.0).as_type(dtype)
    population = Population(belief, Plan(22, mirrored), NoiseStream(1, dtype), 7)
    u = np.random.default_rng(5).standard_normal(22)
    kept = np.empty((population.plan.rows, dim), dtype)
    population.block(0, 22, kept)
    results = []
    for threads in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        results += [
            score_function(Sample(population, NoiseBlock(population, rows), u, u)).gradient for rows in (kept, None)
        ]
    odd, even = population.plan.fold(u / 22)
    np.testing.assert_allclose(results[0].mean, odd @ kept, atol=2e-6 if dtype == "float32" else 1e-14)
    expected = 0.5 * (even @ kept.astype(float) ** 2 - even.sum())
    np.testing.assert_allclose(results[0].covariance.values, expected, atol=1e-5 if dtype == "float32" else 1e-13)
    assert results[0].mean.dtype == dtype
    for other in results[1:]:
        np.testing.assert_array_equal(other.mean, results[0].mean)
        np.testing.assert_array_equal(other.covariance.values, results[0].covariance.values)
