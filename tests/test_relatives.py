"""ARS, TR-ES, MORE and TR-CMA beside implementations of their papers' formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq, minimize

import cones
from cones import InputError, Strategy

DIM = 5


def rosenbrock(X: np.ndarray) -> np.ndarray:
    return (100.0 * (X[:, 1:] - X[:, :-1] ** 2) ** 2 + (1.0 - X[:, :-1]) ** 2).sum(axis=1)


def start() -> np.ndarray:
    return np.linspace(-1.0, 1.0, DIM)


def told(es: Strategy) -> tuple[np.ndarray, np.ndarray]:
    X = np.array(es.ask())
    losses = rosenbrock(X)
    es.tell(es.ask(), losses)
    return X, losses


class TestARS:
    @pytest.mark.parametrize(("pairs", "best"), [(8, 8), (8, 3), (1, 1)])
    def test_the_papers_loop(self, pairs: int, best: int) -> None:
        """Algorithm 1 of Mania et al., version V1-t."""
        alpha, nu = 0.05, 0.03
        es = cones.ARS(
            start(), nu, popsize=2 * pairs, rng=3, step=f"ars,step_size={alpha}",
            estimator=f"best_directions,share={best / pairs}",
        )  # fmt: skip
        theta = start()
        for _ in range(15):
            X, losses = told(es)
            deltas, rewards = (X[::2] - theta) / nu, -losses.reshape(-1, 2)
            used = np.argsort(-rewards.max(axis=1), kind="stable")[:best]
            differences = rewards[used, 0] - rewards[used, 1]
            theta = theta + alpha / (best * rewards[used].std()) * differences @ deltas[used]
            np.testing.assert_allclose(es.state.belief.mean, theta, rtol=1e-6, atol=1e-8)
        np.testing.assert_array_equal(es.state.belief.standard_deviations(), np.full(DIM, nu))

    def test_a_deviation_per_coordinate_is_ars_in_scaled_coordinates(self) -> None:
        scale = np.array([0.1, 0.2, 0.4, 0.1, 0.3])
        unit = math.sqrt(float(np.mean(scale**2)))
        one, other = cones.ARS(start(), scale, rng=0), cones.ARS(start() / scale * unit, unit, rng=0)
        for _ in range(5):
            X = np.array(one.ask())
            np.testing.assert_allclose(np.array(other.ask()) * scale / unit, X, rtol=1e-9)
            for es in (one, other):
                es.tell(es.ask(), rosenbrock(X))
        np.testing.assert_allclose(other.state.belief.mean * scale / unit, one.state.belief.mean, rtol=1e-9)

    def test_the_size_of_losses_does_not_matter(self) -> None:
        one, other = (cones.ARS(start(), 0.1, rng=0) for _ in range(2))
        for _ in range(5):
            one.tell(one.ask(), rosenbrock(np.array(one.ask())))
            other.tell(other.ask(), 1e-200 * rosenbrock(np.array(other.ask())) + 0.0)
        np.testing.assert_allclose(other.state.belief.mean, one.state.belief.mean, rtol=1e-9)


class TestTRES:
    def surrogate(self, theta: np.ndarray, old: np.ndarray, sigma: float, X: np.ndarray, u: np.ndarray) -> float:
        """The clipped surrogate of Liu et al. with losses: the greater of both terms, coordinate by coordinate."""
        ratio = np.exp((((X - old) ** 2) - (X - theta) ** 2) / (2.0 * sigma**2))
        clipped = np.clip(ratio, 0.8, 1.2)
        return float(np.maximum(ratio * u[:, None], clipped * u[:, None]).sum() / len(X))

    @pytest.mark.parametrize("antithetic", [True, False])
    def test_epochs_of_adam_on_the_surrogate(self, antithetic: bool) -> None:
        sigma, rate = 0.5, 0.02
        es = cones.TRES(
            start(), sigma, popsize=30, rng=1, antithetic=antithetic, estimator="clipped,epochs=8,clip=0.2",
            optimizer=cones.Adam(rate, 0.0),
        )  # fmt: skip
        theta, first, second, count, cut = start(), np.zeros(DIM), np.zeros(DIM), 0, 0
        for _ in range(4):
            X, losses = told(es)
            ranks = np.argsort(np.argsort(losses)) / (len(losses) - 1) - 0.5
            old = theta
            for _ in range(8):
                count += 1
                steps = 1e-6 * np.eye(DIM)
                gradient = np.array([
                    self.surrogate(theta + h, old, sigma, X, ranks) - self.surrogate(theta - h, old, sigma, X, ranks)
                    for h in steps
                ]) / 2e-6  # fmt: skip
                first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
                move = first / (1 - 0.9**count) / (np.sqrt(second / (1 - 0.999**count)) + 1e-8)
                theta = theta - rate * move
            ratio = np.exp((((X - old) ** 2) - (X - theta) ** 2) / (2.0 * sigma**2))
            cut += int((np.abs(ratio - 1.0) > 0.2).sum())
            np.testing.assert_allclose(es.state.belief.mean, theta, rtol=1e-5, atol=1e-6)
            assert es.history.latest("step") == pytest.approx(np.linalg.norm(theta - old), rel=1e-4)
            assert es.history.latest("kl") == pytest.approx(((theta - old) ** 2).sum() / (2 * sigma**2), rel=1e-4)
        assert cut > 20  # the clip is at work

    def test_one_epoch_is_es_with_a_fixed_covariance(self) -> None:
        optimizer = cones.Adam(0.05, 0.0)
        one = cones.TRES(start(), 0.3, rng=0, estimator="clipped,epochs=1", optimizer=optimizer)
        other = cones.ES(start(), 0.3, rng=0, optimizer=optimizer)
        for _ in range(4):
            told(one), told(other)
        np.testing.assert_array_equal(one.state.belief.mean, other.state.belief.mean)

    def test_variances_follow_the_surrogate_where_they_may(self) -> None:
        """The second epoch's gradient in log sigma^2, beside differences of the surrogate."""
        es = cones.TRES(
            start(), 0.5, rng=2, popsize=40, antithetic=False, optimizer=cones.SGD(0.1, 0.3), step="plain",
            estimator="clipped,epochs=2,clip=0.2", shaping="standardised",
        )  # fmt: skip
        X, losses = told(es)
        u = (losses - losses.mean()) / losses.std()

        def surrogate(mean: np.ndarray, logs: np.ndarray) -> float:
            z, new = (X - start()) / 0.5, (X - mean) / np.exp(0.5 * logs)
            ratio = np.exp(0.5 * (z * z - new * new) - 0.5 * (logs - math.log(0.25)))
            return float(np.maximum(ratio * u[:, None], np.clip(ratio, 0.8, 1.2) * u[:, None]).sum() / len(X))

        mean, logs = start(), np.full(DIM, math.log(0.25))
        for _ in range(2):
            steps = 1e-6 * np.eye(DIM)
            of_mean = np.array([surrogate(mean + h, logs) - surrogate(mean - h, logs) for h in steps]) / 2e-6
            of_logs = np.array([surrogate(mean, logs + h) - surrogate(mean, logs - h) for h in steps]) / 2e-6
            mean, logs = mean - 0.1 * of_mean, logs - 0.3 * of_logs
        np.testing.assert_allclose(es.state.belief.mean, mean, rtol=1e-5)
        np.testing.assert_allclose(es.state.belief.standard_deviations(), np.exp(0.5 * logs), rtol=1e-5)


class TestMORE:
    def test_the_papers_dual(self) -> None:
        """The dual of Abdolmaleki et al. in the parameters of x, minimised by SciPy, with the model that was fitted."""
        es = cones.MORE(start(), 0.5, rng=0, popsize=30, step="more,radius=0.8,rate=0.98,least_entropy=-20")
        moved = 0
        for _ in range(5):
            before = es.state.belief
            told(es)
            model = es.state.components.estimator.model
            if model is None or not es.history.latest("model_leads"):
                continue
            moved += 1
            inverse = np.linalg.inv(before.factor)
            # The model of the reward, x^T Rr x + x^T r + constant.
            curvature = -0.5 * inverse.T @ model.curvature @ inverse
            r = -inverse.T @ model.gradient - 2.0 * curvature @ before.mean
            precision = np.linalg.inv(before.covariance)
            entropy = before.entropy()
            beta = 0.98 * (entropy + 20.0) - 20.0

            def parts(eta: float, precision=precision, curvature=curvature, r=r, before=before):
                return np.linalg.inv(eta * precision - 2.0 * curvature), eta * precision @ before.mean + r

            def dual(
                logs: np.ndarray, least: float, parts=parts, precision=precision, before=before, beta=beta
            ) -> float:
                eta, omega = least + math.exp(logs[0]), math.exp(logs[1])
                F, f = parts(eta)
                log_det = np.linalg.slogdet(2.0 * math.pi * (eta + omega) * F).logabsdet
                old = np.linalg.slogdet(2.0 * math.pi * before.covariance).logabsdet
                value = eta * 0.64 - omega * beta
                value += 0.5 * (f @ F @ f - eta * before.mean @ precision @ before.mean)
                return value + 0.5 * (-eta * old + (eta + omega) * log_det)

            least = max(0.0, -float(np.linalg.eigvalsh(model.curvature).min()))
            guess = np.log([max(es.history.latest("multiplier") * 2.0 - least, 1e-3), 1.0])
            options = {"xatol": 1e-10, "fatol": 1e-14, "maxiter": 600, "maxfev": 600}
            found = minimize(dual, guess, args=(least,), method="Nelder-Mead", options=options)
            F, f = parts(least + math.exp(found.x[0]))
            after = es.state.belief
            np.testing.assert_allclose(after.mean, F @ f, rtol=1e-3, atol=1e-4)
            expected = (least + math.exp(found.x[0]) + math.exp(found.x[1])) * F
            np.testing.assert_allclose(after.covariance, expected, rtol=5e-3, atol=1e-3 * float(np.abs(expected).max()))
            assert after.kl(before) <= 0.64 * (1.0 + 1e-6)
            assert after.entropy() >= beta - 1e-6
        assert moved >= 3

    def test_too_many_dimensions(self) -> None:
        with pytest.raises(InputError, match="x0: expected at most 64 coordinates for MORE's quadratic model, got 65"):
            cones.MORE(np.zeros(65))


class TestTRCMA:
    def share(self, divergence, bound: float) -> float:
        return 1.0 if divergence(1.0) <= bound else brentq(lambda c: divergence(c) - bound, 0.0, 1.0, xtol=1e-15)

    def test_dense_matrices(self) -> None:
        """Maximum likelihood and its bounds with dense matrices and a root finder."""
        es = cones.TRCMA(start(), 0.5, rng=0, popsize=12)
        path, n = np.zeros(DIM), DIM
        for _ in range(10):
            before = es.state.belief
            X, losses = told(es)
            Z = np.linalg.solve(before.factor, (X - before.mean).T).T
            u = es.algorithm.shaping(losses) / len(losses)
            v = -np.where(u < 0.0, u, 0.5 * n / (n + 20.0) * u)
            unit, mu = 1.0 / np.abs(v).sum(), np.abs(v).sum() ** 2 / (v @ v)
            m = unit * v @ Z
            c_s = (mu + 2.0) / (n + mu + 5.0)
            d_s = 1.0 + c_s + 2.0 * max(0.0, math.sqrt((mu - 1.0) / (n + 1.0)) - 1.0)
            c_1 = 2.0 / ((n + 1.3) ** 2 + mu)
            c_mu = 2.0 * (mu - 1.75 + 1.0 / mu) / ((n + 2.0) ** 2 + mu)
            path = (1.0 - c_s) * path + math.sqrt(c_s * (2.0 - c_s) * mu) * m
            of_samples = np.einsum("i,ij,ik->jk", -unit * u, Z, Z) + unit * u.sum() * np.eye(n)
            X1 = (c_1 * (np.outer(path, path) - np.eye(n)) + c_mu * of_samples) / (c_1 + c_mu)

            def of_shape(c: float, X1=X1) -> float:
                R = np.eye(n) + c * X1
                sign, log_det = np.linalg.slogdet(R)
                if np.linalg.eigvalsh(R).min() <= 0.0 or sign <= 0:
                    return 1e9
                return 0.5 * float(np.trace(np.linalg.inv(R)) - n + log_det)

            def of_scale(c: float, s=float(path @ path) / n) -> float:
                r = 1.0 + c * (s - 1.0)
                return 0.5 * n * (1.0 / r - 1.0 + math.log(r))

            shape = self.share(of_shape, 0.25 * n * (n + 1) * (c_1**2 + c_mu**2 / mu))
            scale = self.share(of_scale, 2.0 * (c_s / d_s) ** 2)
            mean = min(1.0, math.sqrt(n / mu) / np.linalg.norm(m))
            R = (1.0 + scale * (path @ path / n - 1.0)) * (np.eye(n) + shape * X1)
            after = es.state.belief
            np.testing.assert_allclose(after.mean, before.mean + before.factor @ (mean * m), rtol=1e-7)
            np.testing.assert_allclose(after.covariance, before.factor @ R @ before.factor.T, rtol=1e-6, atol=1e-9)

    def test_it_is_level_with_cma_on_an_ellipsoid(self) -> None:
        def ellipsoid(X: np.ndarray) -> np.ndarray:
            return (X**2 * 10.0 ** np.linspace(0.0, 4.0, DIM)).sum(axis=1)

        common = {"vectorized": True, "rng": 0, "ftarget": 1e-8, "sigma0": 1.0, "maxfev": 6000}
        one, other = (cones.minimize(ellipsoid, start() + 2.0, method=name, **common) for name in ("trcma", "cma"))
        assert one.success
        assert one.nfev < 1.5 * other.nfev


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cones.ARS([1.0, 2.0], step="ars,step_size=0"), "step_size: expected"),
        (lambda: cones.ARS([1.0, 2.0], estimator="best_directions,share=0"), "share: expected"),
        (lambda: cones.ARS([1.0, 2.0], estimator="best_directions,share=1.5"), "share: expected"),
        (lambda: cones.ARS([1.0, 2.0], popsize=7), "popsize: expected an even number"),
        (lambda: cones.TRES([1.0, 2.0], estimator="clipped,epochs=0"), "epochs: expected"),
        (lambda: cones.TRES([1.0, 2.0], estimator="clipped,clip=-0.1"), "clip: expected"),
        (lambda: cones.MORE([1.0, 2.0], step="more,radius=-1"), "radius: expected"),
        (lambda: cones.MORE([1.0, 2.0], step="more,rate=1.5"), "rate: expected"),
        (lambda: cones.MORE([1.0, 2.0], step="more,least_entropy=x"), "least_entropy: expected"),
        (lambda: cones.TRCMA([1.0, 2.0], step="tr_cma,shape=0"), "shape: expected"),
    ],
)
def test_bad_settings_are_named(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize(
    ("belief", "settings", "message"),
    [
        (cones.Bernoulli(np.full(4, 0.5)), {"step": "ars"}, "step: expected one for a Bernoulli, got 'ars'"),
        (cones.Bernoulli(np.full(4, 0.5)), {"step": "more"}, "step: expected one for a Bernoulli, got 'more'"),
        (cones.Space(a=cones.Float(0, 1), b=cones.Flag()), {"step": "tr_cma"}, "step: expected one for a Product, got"),
        (cones.Space(a=cones.Float(0, 1), b=cones.Flag()), {"step": "low_rank"}, "step: expected one for a Product"),
        (np.zeros(4), {"step": "more", "belief": "low_rank"}, "step: expected one for a LowRankGaussian, got 'more'"),
        (np.zeros(4), {"step": "family_path"}, "step: expected one for a DiagonalGaussian, got 'family_path'"),
        (
            np.zeros(4),
            {"estimator": "clipped", "belief": "full"},
            "estimator: expected one for a FullGaussian, got 'cl",
        ),
        (np.zeros(4), {"estimator": "elite"}, "estimator: expected one for a FullGaussian, got 'elite'"),
    ],
)
def test_components_for_other_beliefs_are_refused_before_the_first_evaluation(
    belief: Any, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        cones.CoNES(belief, **settings)
