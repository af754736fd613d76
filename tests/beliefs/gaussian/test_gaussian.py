"""What every Gaussian belief must do, checked against dense linear algebra and against SciPy's Gaussians."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import covariance_of, random_belief, random_gradient, random_log_ratio
from scipy.stats import multivariate_normal

from cones import Gradient, InputError, Step
from cones.beliefs import ENCODINGS, Gaussian, decode, encode, gradient_from_encoding, gradient_to_encoding
from cones.component import components
from cones.sampling import NoiseBlock, NoiseStream, Plan, Population

KINDS = [name for name, kind in components("belief").items() if issubclass(kind, Gaussian)]
pytestmark = pytest.mark.parametrize("kind", KINDS)


def test_frame_is_a_factor_of_the_covariance(kind: str) -> None:
    belief = random_belief(kind, 4, 2)
    L = np.column_stack([belief.from_frame(e) for e in np.eye(4)])
    np.testing.assert_allclose(L @ L.T, covariance_of(belief), atol=1e-13)
    v = np.random.default_rng(3).standard_normal(4)
    np.testing.assert_allclose(belief.to_frame(belief.from_frame(v)), v, atol=1e-13)
    np.testing.assert_allclose(belief.gradient_from_frame(v), np.linalg.solve(L.T, v), atol=1e-12)
    np.testing.assert_allclose(belief.standard_deviations(), np.sqrt(np.diag(covariance_of(belief))))
    np.testing.assert_allclose(belief.spread(), np.sqrt(np.trace(covariance_of(belief)) / 4))


def test_whitened_gradient_gives_the_same_inner_products(kind: str) -> None:
    belief, gradient = random_belief(kind, 4, 4), random_gradient(kind, 4, 5)
    L = np.column_stack([belief.from_frame(e) for e in np.eye(4)])
    frame = belief.whiten(gradient)
    np.testing.assert_allclose(frame.mean, L.T @ gradient.mean, atol=1e-12)
    G = np.diag(gradient.covariance) if kind == "diagonal" else gradient.covariance
    np.testing.assert_allclose(frame.covariance.dense(), L.T @ G @ L, atol=1e-12)


@pytest.mark.parametrize("rows", [2, 9])
def test_moments_of_noise(kind: str, rows: int) -> None:
    belief = random_belief(kind, 5, 0)
    rng = np.random.default_rng(6)
    population = Population(belief, Plan(rows), NoiseStream(1), 3)
    drawn, odd, even = population.noise_rows(), rng.standard_normal(rows), rng.standard_normal(rows)
    expected = drawn.T @ np.diag(even) @ drawn
    if kind == "diagonal":
        expected = np.diag(np.diag(expected))
    first, second = belief.moments(NoiseBlock(population), odd, even)
    np.testing.assert_allclose(first, odd @ drawn, atol=1e-13)
    np.testing.assert_allclose(second.dense(), expected, atol=1e-12)


def test_moved_has_the_covariance_that_it_says(kind: str) -> None:
    belief, change = random_belief(kind, 5, 7), random_log_ratio(kind, 5, 8)
    shift = np.arange(5.0)
    moved = belief.moved(Step(shift=shift, log_ratio=change))
    L = np.column_stack([belief.from_frame(e) for e in np.eye(5)])
    np.testing.assert_allclose(moved.mean, belief.mean + shift)
    np.testing.assert_allclose(covariance_of(moved), L @ change.map(np.exp).dense() @ L.T, atol=1e-12)
    v = np.random.default_rng(9).standard_normal(5)
    np.testing.assert_allclose(moved.to_frame(moved.from_frame(v)), v, atol=1e-12)


def test_log_density_is_that_of_scipy(kind: str) -> None:
    belief = random_belief(kind, 4, 30)
    X = np.random.default_rng(31).standard_normal((50, 4)) * 10.0 ** np.linspace(-3, 2, 50)[:, None]
    expected = multivariate_normal(belief.mean, covariance_of(belief)).logpdf(X)
    np.testing.assert_allclose(belief.log_density(X), expected, rtol=1e-11)
    np.testing.assert_allclose(belief.log_density(X[:1]), expected[:1], rtol=1e-11)


def test_kl_is_that_of_the_textbook(kind: str) -> None:
    p, q = random_belief(kind, 4, 32), random_belief(kind, 4, 33)
    P, Q, difference = covariance_of(p), covariance_of(q), p.mean - q.mean
    logs = np.linalg.slogdet(Q).logabsdet - np.linalg.slogdet(P).logabsdet
    expected = 0.5 * (np.trace(np.linalg.solve(Q, P)) - 4 + difference @ np.linalg.solve(Q, difference) + logs)
    assert p.kl(q) == pytest.approx(expected, rel=1e-12)


def test_entropy_is_that_of_scipy(kind: str) -> None:
    belief = random_belief(kind, 4, 16)
    assert belief.entropy() == pytest.approx(multivariate_normal(belief.mean, covariance_of(belief)).entropy())


def skip_without_encodings(kind: str) -> None:
    if kind == "low_rank":
        pytest.skip("a covariance of low rank has no coordinates of its own")


def test_natural_gradient_is_the_inverse_fisher_information_times_the_gradient(kind: str) -> None:
    """F is the Hessian of the KL divergence: here by finite differences in independent parameters."""
    skip_without_encodings(kind)
    dim = 2
    belief, gradient = random_belief(kind, dim, 17), random_gradient(kind, dim, 18)
    free = [(i, i) for i in range(dim)] if kind == "diagonal" else [(0, 0), (0, 1), (1, 1)]

    def at(theta: np.ndarray):
        if kind == "diagonal":
            return type(belief)(theta[:dim], theta[dim:])
        sigma = np.zeros((dim, dim))
        for (i, j), value in zip(free, theta[dim:], strict=True):
            sigma[i, j] = sigma[j, i] = value
        return type(belief)(theta[:dim], sigma)

    center = np.concatenate([belief.mean, [covariance_of(belief)[i, j] for i, j in free]])
    G = np.diag(gradient.covariance) if kind == "diagonal" else np.asarray(gradient.covariance)
    euclid = np.concatenate([gradient.mean, [G[i, j] * (1 if i == j else 2) for i, j in free]])
    size, h = len(center), 1e-4
    fisher = np.empty((size, size))
    for i in range(size):
        for j in range(size):
            ei, ej = np.eye(size)[i] * h, np.eye(size)[j] * h
            kls = [at(center + s * ei + t * ej).kl(belief) for s, t in ((1, 1), (1, -1), (-1, 1), (-1, -1))]
            fisher[i, j] = (kls[0] - kls[1] - kls[2] + kls[3]) / (4 * h * h)
    expected = np.linalg.solve(fisher, euclid)
    natural = belief.natural_gradient(gradient)
    N = np.diag(natural.covariance) if kind == "diagonal" else np.asarray(natural.covariance)
    actual = np.concatenate([natural.mean, [N[i, j] for i, j in free]])
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_decode_inverts_encode(kind: str, encoding: str) -> None:
    skip_without_encodings(kind)
    belief = random_belief(kind, 4, 19)
    again = decode(type(belief), belief.mean, encode(belief, encoding), encoding)
    assert again.kl(belief) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_chain_rule_by_finite_differences(kind: str, encoding: str) -> None:
    """l(belief) = tr(A Sigma) + log det-like terms would hide errors; a generic smooth l is used."""
    skip_without_encodings(kind)
    dim = 3
    belief = random_belief(kind, dim, 20)
    A = np.random.default_rng(21).standard_normal((dim, dim))
    A = A + A.T

    def loss(some) -> float:
        S = covariance_of(some)
        return float(np.sum(A * S) + np.sin(S[0, 0]) + np.sum(A * (S @ S)))

    S = covariance_of(belief)
    G = A + S @ A + A @ S
    G[0, 0] += np.cos(S[0, 0])
    gradient = Gradient(np.zeros(dim), np.diag(G) if kind == "diagonal" else G)
    pushed = np.asarray(gradient_to_encoding(belief, gradient, encoding).covariance)

    parameters = encode(belief, encoding)
    direction = np.random.default_rng(22).standard_normal(parameters.shape)
    if kind == "full":
        direction = np.tril(direction) if encoding == "cholesky" else direction + direction.T
    h = 1e-6
    plus, minus = (
        loss(decode(type(belief), belief.mean, parameters + s * h * direction, encoding)) for s in (1.0, -1.0)
    )
    assert np.sum(pushed * direction) == pytest.approx((plus - minus) / (2 * h), rel=1e-5)
    pulled = gradient_from_encoding(belief, Gradient(np.zeros(dim), pushed), encoding)
    np.testing.assert_allclose(pulled.covariance, gradient.covariance, atol=1e-9)


def test_unknown_encoding_is_refused(kind: str) -> None:
    with pytest.raises(InputError, match="encoding: expected one of 'covariance'"):
        encode(random_belief(kind, 2, 0), "cholesk")


@pytest.mark.parametrize(
    ("gradient", "message"),
    [
        (Gradient([1.0], [1.0]), r"gradient.mean: expected shape \(3,\), got shape \(1,\)"),
        (
            Gradient([1.0, np.nan, 0.0], [1.0, 1.0, 1.0]),
            r"gradient.mean: expected finite numbers, got nan at index \(1,\)",
        ),
        (Gradient([1.0, 1.0, 0.0], [1.0]), r"gradient.covariance: expected shape"),
        (Gradient(["a", "b", "c"], [1.0]), "gradient.mean: expected real numbers"),
    ],
)
def test_bad_gradients_are_named(kind: str, gradient: Gradient, message: str) -> None:
    with pytest.raises(InputError, match=message):
        random_belief(kind, 3, 0).whiten(gradient)
