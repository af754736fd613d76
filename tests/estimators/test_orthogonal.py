"""Orthogonal rows: their directions, their lengths, and the variance that they save."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conformance.variants import assert_same_runs
from helpers import random_belief, sample_of, signed_noise
from scipy import stats

import cones
from cones import DiagonalGaussian, InputError
from cones.estimators import Orthogonal, ScoreFunction
from cones.estimators.orthogonal import OrthogonalRows
from cones.sampling import NoiseStream, Plan, Population

METHODS = {"es": cones.ES, "nes": cones.NES, "cones": cones.CoNES}


def orthogonal_draws(n: int, rows: int, count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([OrthogonalRows()(rng.standard_normal((rows, n))) for _ in range(count)])


class TestRows:
    @pytest.mark.parametrize(("n", "rows", "block"), [(30, 12, None), (30, 30, None), (8, 20, None), (30, 20, 7)])
    def test_rows_of_a_block_are_orthogonal_and_keep_their_lengths(self, n: int, rows: int, block: int | None) -> None:
        noise = np.random.default_rng(0).standard_normal((rows, n))
        drawn = OrthogonalRows(block)(noise)
        size = block or min(n, rows)
        for k in range(0, rows, size):
            of_block = drawn[k : k + size]
            lengths = np.linalg.norm(noise[k : k + size], axis=1)
            np.testing.assert_allclose(of_block @ of_block.T, np.diag(lengths**2), atol=1e-11)
        assert not np.allclose(drawn[0] @ drawn[-1], 0.0) or rows <= size  # blocks are independent
        assert OrthogonalRows()(noise.astype("float32")).dtype == np.float32

    def test_each_row_is_standard_normal(self) -> None:
        """Length of the chi distribution, every coordinate normal, in the first and in the last row of a block."""
        draws = orthogonal_draws(6, 6, 4000)
        for row in (0, 5):
            assert stats.kstest(np.linalg.norm(draws[:, row], axis=1), stats.chi(6).cdf).pvalue > 0.01
            assert stats.kstest(draws[:, row].ravel(), stats.norm.cdf).pvalue > 0.01

    def test_the_first_rows_can_be_given(self) -> None:
        noise = np.random.default_rng(1).standard_normal((9, 5))
        first = np.linalg.qr(np.random.default_rng(2).standard_normal((5, 2)))[0].T
        drawn = OrthogonalRows(first=first)(noise)
        lengths = np.linalg.norm(noise, axis=1)
        for k in (0, 5):  # both blocks
            signs = np.sign((noise[k : k + 2] * first).sum(axis=1))
            expected = (signs * lengths[k : k + 2])[:, None] * first
            np.testing.assert_allclose(drawn[k : k + 2], expected, atol=1e-12)
        np.testing.assert_allclose(drawn[2:5] @ first.T, 0.0, atol=1e-12)
        np.testing.assert_allclose(OrthogonalRows(first=first)(noise[:1])[0], drawn[0], atol=1e-12)

    @pytest.mark.parametrize("kind", ["diagonal", "full"])
    def test_any_part_of_a_population_is_that_of_the_whole(self, kind: str) -> None:
        """More rows than are multiplied at once, and more than there are dimensions."""
        plan = Orthogonal().plan(None, Plan(300, mirrored=True))
        population = Population(random_belief(kind, 80, 0), plan, NoiseStream(1), 3)
        rows, whole = population.noise_rows(), np.asarray(population)
        gram = rows[:80] @ rows[:80].T
        np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-10)
        np.testing.assert_array_equal(population.noise_rows(70, 101), rows[70:101])
        np.testing.assert_array_equal(population.block(127, 203), whole[127:203])
        np.testing.assert_array_equal(population[299], whole[299])


class TestEstimate:
    def test_it_is_the_score_function_of_its_rows(self) -> None:
        belief, u = random_belief("diagonal", 12, 0), np.random.default_rng(3).standard_normal(10)
        sample = sample_of(belief, Orthogonal().plan(None, Plan(10)), u)
        estimate, _ = Orthogonal().estimate(None, sample)
        z = signed_noise(sample.population)
        np.testing.assert_allclose(estimate.gradient.mean, u @ z / 10, atol=1e-13)
        np.testing.assert_allclose(z @ z.T, np.diag((z**2).sum(axis=1)), atol=1e-11)

    @pytest.mark.parametrize("mirrored", [True, False], ids=["pairs", "independent"])
    def test_it_is_unbiased_on_a_quadratic_and_its_variance_is_that_of_the_theory(self, mirrored: bool) -> None:
        """f(x) = 1/2 x^T H x + b^T x: the gradient of its expectation at the mean is H mu + b, and L^T of that."""
        n, rows, count = 10, 8, 4000
        belief, plan = DiagonalGaussian(np.linspace(-1.0, 1.0, n), 0.25), Plan(rows * (1 + mirrored), mirrored)
        H, b = np.diag(np.linspace(0.5, 2.0, n)), np.arange(n) - 4.0
        truth = 0.5 * (H @ belief.mean + b)
        errors = {}
        for name, estimator in (("plain", ScoreFunction()), ("orthogonal", Orthogonal())):
            found = []
            for iteration in range(count):
                population = Population(belief, estimator.plan(None, plan), NoiseStream(5), iteration)
                X = np.asarray(population)
                losses = 0.5 * np.einsum("ij,ij->i", X @ H, X) + X @ b
                constant = 0.5 * belief.mean @ H @ belief.mean + b @ belief.mean + 0.125 * np.trace(H)
                sample = sample_of(belief, estimator.plan(None, plan), losses - constant, 5, iteration)
                found.append(estimator.estimate(None, sample)[0].gradient.mean)
            deviation = np.std(found, axis=0) / np.sqrt(count)
            assert (np.abs(np.mean(found, axis=0) - truth) < 4.5 * deviation).all()
            errors[name] = np.mean(np.sum((found - truth) ** 2, axis=1))
        if mirrored:  # the even part cancels, and the loss is linear
            assert errors["plain"] == pytest.approx((n + 1) / rows * truth @ truth, rel=0.05)
            assert errors["orthogonal"] == pytest.approx((n + 2 - rows) / rows * truth @ truth, rel=0.05)
        else:
            assert errors["orthogonal"] < 0.5 * errors["plain"]

    def test_more_orthogonal_rows_than_dimensions_are_refused(self) -> None:
        for method in METHODS.values():
            with pytest.raises(InputError, match="block: expected at most 5 orthogonal rows in 5 dimensions, got 6"):
                method(np.zeros(5), estimator="orthogonal,block=6")
        with pytest.raises(InputError, match="block: expected at least 1, got 0"):
            Orthogonal(block=0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("estimator", ["orthogonal", "orthogonal,block=4"])
def test_chunks_and_checkpoints_change_nothing(method: str, estimator: str, tmp_path: Path) -> None:
    strategies = [
        METHODS[method](np.ones(20), 0.3, rng=1, popsize=24, estimator=estimator, chunked=chunked)
        for chunked in (False, True)
    ]
    assert_same_runs(*strategies, tmp_path / "run.ckpt")
