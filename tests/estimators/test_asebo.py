"""ASEBO against the formulas of its docstring, by a second implementation in plain linear algebra."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conformance.variants import assert_same, through_a_file
from helpers import random_belief, sample_of, signed_noise
from scipy.linalg import sqrtm

import cones
from cones import DiagonalGaussian, InputError
from cones.estimators import Asebo
from cones.estimators.asebo import ActiveSubspace, AseboState
from cones.estimators.score_function import score_function
from cones.radius import Fixed
from cones.sampling import Plan


def basis_of(n: int, r: int, seed: int = 0) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((n, r)))[0]


def covariance(subspace: ActiveSubspace) -> np.ndarray:
    n, r = subspace.basis.shape
    p, q = subspace.alpha / n, (1.0 - subspace.alpha) / r
    return p * np.eye(n) + q * subspace.basis @ subspace.basis.T


def iterations(estimator: Asebo, count: int, n: int = 12, popsize: int = 6, state=None, first: int = 0):
    """Iterations on random utilities: the estimate, the state after it, and the sample."""
    belief, plan = random_belief("diagonal", n, 0), Plan(popsize, mirrored=True)
    for iteration in range(first, first + count):
        utilities = np.random.default_rng((9, iteration)).standard_normal(popsize)
        sample = sample_of(belief, estimator.plan(state, plan), utilities, 7, iteration)
        estimate, state = estimator.estimate(state, sample)
        yield estimate, state, sample


class TestTransform:
    @pytest.mark.parametrize("alpha", [0.05, 0.5, 0.9])
    @pytest.mark.parametrize("r", [1, 3])
    def test_noise_has_the_covariance_up_to_its_lengths(self, alpha: float, r: int) -> None:
        """Before the lengths are set right, rows are C^(1/2) z: their sample covariance is C."""
        subspace = ActiveSubspace(basis_of(6, r), alpha)
        C = covariance(subspace)
        noise = np.random.default_rng(1).standard_normal((200_000, 6))
        drawn = subspace(noise)
        lengths = np.linalg.norm(noise @ np.real(sqrtm(C)), axis=1) / np.linalg.norm(noise, axis=1)
        measured = np.cov((drawn * lengths[:, None]).T)
        np.testing.assert_allclose(measured, C, atol=0.01 * np.trace(C))
        np.testing.assert_allclose(drawn * lengths[:, None], noise @ np.real(sqrtm(C)), atol=1e-12)

    def test_lengths_are_those_of_isotropic_noise(self) -> None:
        noise = np.random.default_rng(2).standard_normal((50, 20))
        drawn = ActiveSubspace(basis_of(20, 4), 0.1)(noise)
        np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), np.linalg.norm(noise, axis=1), rtol=1e-12)

    def test_alpha_of_one_is_isotropic_and_of_zero_stays_in_the_subspace(self) -> None:
        noise, U = np.random.default_rng(3).standard_normal((50, 20)), basis_of(20, 4)
        np.testing.assert_allclose(ActiveSubspace(U, 1.0)(noise), noise, atol=1e-13)
        inside = ActiveSubspace(U, 0.0)(noise)
        np.testing.assert_allclose(inside @ U @ U.T, inside, atol=1e-12)

    def test_rows_are_transformed_one_by_one_and_keep_their_type(self) -> None:
        noise, subspace = np.random.default_rng(4).standard_normal((9, 20)), ActiveSubspace(basis_of(20, 4), 0.3)
        before = noise.copy()
        whole = subspace(noise)
        for k in range(9):
            np.testing.assert_allclose(subspace(noise[k : k + 1])[0], whole[k], rtol=1e-12)
        np.testing.assert_array_equal(noise, before)
        np.testing.assert_allclose(subspace(-noise), -whole, rtol=1e-12)  # pairs stay pairs
        assert subspace(noise.astype("float32")).dtype == np.float32


class TestEstimator:
    def test_isotropic_in_warm_up(self) -> None:
        asebo, plan = Asebo(warm_up=5), Plan(6, mirrored=True)
        assert asebo.plan(None, plan) == plan
        for iteration, (estimate, state, sample) in enumerate(iterations(asebo, 8)):
            assert (sample.plan.transform is None) == (iteration < 5)
            assert (asebo.plan(state, plan).transform is None) == (iteration < 4)
            if iteration < 4:
                assert dict(estimate.diagnostics) == {"subspace_rank": 0.0, "subspace_alpha": 1.0}

    def test_isotropic_in_warm_up_with_a_short_archive(self) -> None:
        transforms = [sample.plan.transform for _, _, sample in iterations(Asebo(warm_up=6, archive=3), 8)]
        assert [transform is None for transform in transforms] == [True] * 6 + [False] * 2

    def test_the_estimate_is_the_score_function_of_the_noise_that_was_drawn(self) -> None:
        for estimate, _, sample in iterations(Asebo(warm_up=2), 6):
            u, z = sample.utilities, signed_noise(sample.population)
            np.testing.assert_allclose(estimate.gradient.mean, u @ z / 6, atol=1e-13)
            np.testing.assert_allclose(estimate.gradient.covariance.values, u @ (z**2 - 1) / 12, atol=1e-13)
            assert_same(estimate.noise, score_function(sample).noise)
            np.testing.assert_allclose(sample.candidates(), sample.belief.candidates(z), atol=1e-13)

    def test_the_subspace_and_alpha_are_those_of_the_rule(self) -> None:
        """U: leading eigenvectors of the sum of the gradients' outer products; alpha = |g_perp| / |g_par|."""
        asebo = Asebo(warm_up=3, archive=5, share=0.7)
        gradients, alphas = [], []
        for estimate, state, _ in iterations(asebo, 12):
            g = estimate.gradient.mean
            gradients.append(g)
            np.testing.assert_array_equal(state.gradients, gradients[-5:])
            if len(gradients) < 3:
                assert state.subspace is None
                continue
            values, vectors = np.linalg.eigh(sum(np.outer(v, v) for v in gradients[-5:]))
            values, vectors = values[::-1], vectors[:, ::-1]
            rank = next(r for r in range(1, 13) if values[:r].sum() >= 0.7 * values.sum())
            projection = vectors[:, :rank] @ vectors[:, :rank].T
            U = state.subspace.basis
            assert U.shape == (12, rank)
            np.testing.assert_allclose(U.T @ U, np.eye(rank), atol=1e-12)
            np.testing.assert_allclose(U @ U.T, projection, atol=1e-9)
            inside = projection @ g
            alpha = min(1.0, np.linalg.norm(g - inside) / np.linalg.norm(inside))
            assert state.subspace.alpha == pytest.approx(alpha, abs=1e-9)
            assert estimate.diagnostics["subspace_rank"] == rank
            assert estimate.diagnostics["subspace_alpha"] == state.subspace.alpha
            alphas.append(alpha)
        assert 0.0 < min(alphas) < 1.0

    @pytest.mark.parametrize(("share", "rank"), [(0.85, 1), (0.95, 2), (0.985, 3), (0.9999, 4), (0.0, 1)])
    def test_rank_by_share(self, share: float, rank: int) -> None:
        """Past gradients along axes that explain 90, 8, 1.5 and 0.5 percent of their variance."""
        past = np.diag(np.sqrt([0.90, 0.08, 0.015, 0.005, 0.0]))[:4]
        asebo = Asebo(warm_up=1, share=share)
        sample = sample_of(DiagonalGaussian(np.zeros(5), 1.0), Plan(4), np.zeros(4))
        _, state = asebo.estimate(AseboState(past), sample)
        U = state.subspace.basis
        assert U.shape == (5, rank)
        np.testing.assert_allclose(U @ U.T, np.diag([1.0] * rank + [0.0] * (5 - rank)), atol=1e-12)

    def test_a_state_goes_on_bit_for_bit_after_a_file(self, tmp_path: Path) -> None:
        asebo = Asebo(warm_up=3, archive=4)
        straight = list(iterations(asebo, 12))
        for count in (2, 3, 8):
            state = through_a_file(straight[count - 1][1], tmp_path)
            resumed = iterations(asebo, 12 - count, state=state, first=count)
            for (one, _, _), (other, _, _) in zip(straight[count:], resumed, strict=True):
                assert_same(one, other)

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"warm_up": 0}, "warm_up: expected at least 1, got 0"),
            ({"archive": 0}, "archive: expected at least 1, got 0"),
            ({"share": 1.5}, r"share: expected a number in \[0, 1\), got 1.5"),
        ],
    )
    def test_bad_settings_are_named(self, settings: dict[str, float], message: str) -> None:
        with pytest.raises(InputError, match=message):
            Asebo(**settings)


class TestRuns:
    ACTIVE = basis_of(200, 3)
    STEP = cones.Balls(Fixed(1.0), Fixed(0.0), Fixed(0.0))

    def fun(self, X: np.ndarray) -> np.ndarray:
        return ((np.asarray(X) @ self.ACTIVE - 6.0) ** 2).sum(axis=1)

    def evaluations(self, estimator: str, popsize: int) -> list[int]:
        found = []
        for seed in range(3):
            result = cones.minimize(
                self.fun,
                np.zeros(200),
                sigma0=0.3,
                vectorized=True,
                rng=seed,
                popsize=popsize,
                estimator=estimator,
                radius=self.STEP,
                ftarget=1.0,
                maxfev=20_000,
                stagnation=None,
            )
            assert result.stop == "ftarget"
            found.append(result.nfev)
        return found

    @pytest.mark.parametrize("popsize", [20, 200])
    def test_an_active_subspace_is_found_with_fewer_evaluations(self, popsize: int) -> None:
        plain, asebo = (self.evaluations(name, popsize) for name in ("score_function", "asebo"))
        assert max(asebo) < 0.8 * min(plain)

    @pytest.mark.parametrize("chunked", [False, True])
    @pytest.mark.parametrize("when", [3, 12, 20])
    def test_a_checkpoint_goes_on_bit_for_bit(self, when: int, chunked: bool, tmp_path: Path) -> None:
        def begun() -> cones.Strategy:
            return cones.CoNES(
                np.zeros(200), 0.3, rng=1, popsize=20, estimator=Asebo(warm_up=5), radius=self.STEP, chunked=chunked
            )

        straight, broken = begun(), begun()
        for iteration in range(30):
            if iteration == when:
                broken.save(tmp_path / "run.ckpt")
                broken = cones.load(tmp_path / "run.ckpt")
            for es in (straight, broken):
                X = es.ask()
                es.tell(X, self.fun(X))
        np.testing.assert_array_equal(broken.state.belief.mean, straight.state.belief.mean)
        assert_same(broken.state.components, straight.state.components)
        for name in ("subspace_rank", "subspace_alpha", "mean_loss"):
            np.testing.assert_array_equal(broken.history[name], straight.history[name])
        assert straight.history["subspace_rank"][-1] >= 1.0

    def test_chunks_change_nothing(self) -> None:
        means = []
        for chunked in (False, True):
            es = cones.CoNES(np.zeros(200), 0.3, rng=1, popsize=20, estimator="asebo,warm_up=3", chunked=chunked)
            for _ in range(10):
                X = es.ask()
                es.tell(X, self.fun(X))
            means.append(es.state.belief.mean)
        np.testing.assert_array_equal(means[0], means[1])

    @pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
    def test_worker_processes_draw_the_same_candidates(self) -> None:
        settings = {"rng": 1, "popsize": 8, "estimator": "asebo,warm_up=2", "maxiter": 6, "chunked": True}
        alone, spread = (cones.minimize(first_five, np.ones(40), workers=workers, **settings) for workers in (1, 2))
        np.testing.assert_array_equal(alone.mean, spread.mean)


def first_five(x: np.ndarray) -> float:
    return float((x[:5] ** 2).sum())
