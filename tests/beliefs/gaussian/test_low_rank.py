"""The low-rank Gaussian against dense NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cones import InputError, Step
from cones.beliefs import (
    DiagonalGaussian,
    DiagonalMatrix,
    FullGaussian,
    LowRankGaussian,
    Span,
    SpannedMatrix,
    SpectralMatrix,
)
from cones.sampling import NoiseBlock, NoiseStream, Plan, Population


def belief_of(dim: int, axes: int, seed: int, rank: int | None = None) -> LowRankGaussian:
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((dim, axes)))[0]
    deviation, values = rng.uniform(0.3, 2.0, dim), 10.0 ** rng.uniform(-2, 2, axes)
    return LowRankGaussian(rng.standard_normal(dim), deviation, basis, values, rank)


def full(belief: LowRankGaussian) -> FullGaussian:
    return FullGaussian(belief.mean, belief.covariance)


def estimate_at(belief: LowRankGaussian, rows: int, seed: int) -> tuple[SpannedMatrix, np.ndarray, np.ndarray]:
    """sum_i w_i z_i z_i^T as the belief gives it, and dense; and a vector."""
    population = Population(belief, Plan(rows), NoiseStream(seed), 0)
    noise, rng = population.noise_rows(), np.random.default_rng(seed)
    weights = rng.standard_normal(rows)
    _, matrix = belief.moments(NoiseBlock(population), weights, weights)
    assert isinstance(matrix, SpannedMatrix)
    return matrix, (noise.T * weights) @ noise, rng.standard_normal(belief.dim)


@given(dim=st.integers(2, 12), axes=st.integers(0, 4), seed=st.integers(0, 1000))
def test_density_divergence_and_draws_are_those_of_the_dense_gaussian(dim: int, axes: int, seed: int) -> None:
    axes = min(axes, dim - 1)
    p, q = belief_of(dim, axes, seed), belief_of(dim, max(axes - 1, 0), seed + 1)
    X = np.random.default_rng(seed).standard_normal((5, dim))
    np.testing.assert_allclose(p.log_density(X), full(p).log_density(X), rtol=1e-9, atol=1e-9)
    assert p.kl(q) == pytest.approx(full(p).kl(full(q)), rel=1e-8, abs=1e-9)
    assert p.entropy() == pytest.approx(full(p).entropy(), rel=1e-10, abs=1e-10)
    draws = p.candidates(np.eye(dim)) - p.mean
    np.testing.assert_allclose(draws.T @ draws, p.covariance, rtol=1e-9, atol=1e-9)


@given(dim=st.integers(3, 12), rows=st.integers(1, 8), seed=st.integers(0, 1000))
def test_a_spanned_matrix_is_the_dense_one(dim: int, rows: int, seed: int) -> None:
    belief = belief_of(dim, 2, seed)
    matrix, dense, vector = estimate_at(belief, rows, seed)
    np.testing.assert_allclose(matrix.dense(), dense, atol=1e-9)
    assert matrix.trace() == pytest.approx(np.trace(dense), abs=1e-9)
    assert matrix.norm() == pytest.approx(np.linalg.norm(dense), abs=1e-9)
    np.testing.assert_allclose(np.sort(matrix.spectrum()), np.linalg.eigvalsh(dense), atol=1e-9)
    more = matrix.map(lambda values: values + 1.0).plus_outer(vector, -0.5)
    expected = dense + np.eye(dim) - 0.5 * np.outer(vector, vector)
    np.testing.assert_allclose(more.dense(), expected, atol=1e-9)
    np.testing.assert_allclose(np.sort(more.spectrum()), np.linalg.eigvalsh(expected), atol=1e-9)
    np.testing.assert_allclose(more.with_spectrum(more.spectrum()).dense(), expected, atol=1e-9)


@pytest.mark.parametrize("rest", [0.0, 0.4])
def test_a_step_with_room_for_all_axes_gives_the_exact_covariance(rest: float) -> None:
    belief = belief_of(9, 2, 0, rank=8)
    matrix, dense, _ = estimate_at(belief, 3, 1)
    change = matrix.map(lambda values: 0.1 * values + rest)
    root = np.linalg.cholesky(belief.covariance)
    frame = np.column_stack([belief.from_frame(e) for e in np.eye(9)])
    np.testing.assert_allclose(frame @ frame.T, root @ root.T, atol=1e-12)
    values, vectors = np.linalg.eigh(0.1 * dense + rest * np.eye(9))
    expected = frame @ (vectors * np.exp(values)) @ vectors.T @ frame.T
    after = belief.moved(Step(shift=np.ones(9), log_ratio=change))
    np.testing.assert_allclose(after.covariance, expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(after.basis.T @ after.basis, np.eye(after.values.size), atol=1e-10)


def test_the_axes_that_are_kept_have_the_largest_divergence_and_the_trace_stays() -> None:
    belief, n = LowRankGaussian(np.zeros(10), np.ones(10), rank=2), 10
    values = np.log([4.0, 0.1, 1.3, 0.9])
    change = SpectralMatrix(values, np.eye(n)[:, :4], 0.0)
    after = belief.moved(Step(shift=np.zeros(n), log_ratio=change))
    factor = (1.3 + 0.9 + 6.0) / 8.0
    np.testing.assert_allclose(np.diag(after.covariance), [4.0, 0.1, *[factor] * 8], rtol=1e-12)
    assert after.values.size == 2
    assert np.trace(after.covariance) == pytest.approx(np.exp(values).sum() + 6.0)


def test_a_diagonal_step_moves_it_as_a_diagonal_belief() -> None:
    rng = np.random.default_rng(0)
    mean, deviation, step = rng.standard_normal(6), rng.uniform(1, 2, 6), Step(rng.standard_normal(6), None)
    step = step._replace(log_ratio=DiagonalMatrix(rng.standard_normal(6)))
    after, kl = LowRankGaussian(mean, deviation).move(step)
    expected, divergence = DiagonalGaussian(mean, deviation**2).move(step)
    np.testing.assert_allclose(after.standard_deviations(), expected.deviation)
    assert after.diagonal
    assert after.separable
    assert kl == pytest.approx(divergence)
    with pytest.raises(InputError, match="expected no diagonal matrix"):
        belief_of(6, 2, 0).moved(step)


def test_noise_that_is_redrawn_gives_the_same_bits() -> None:
    belief = belief_of(70_000, 3, 0)
    population = Population(belief, Plan(5), NoiseStream(3), 1)
    kept = np.empty((5, belief.dim))
    population.block(0, 5, kept)
    weights = np.arange(5.0) - 2.0
    (a, one), (b, other) = (belief.moments(NoiseBlock(population, noise), weights, weights) for noise in (kept, None))
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.values, other.values)
    step = Step(shift=a, log_ratio=one.map(lambda values: 0.1 * values))
    again = step._replace(log_ratio=other.map(lambda values: 0.1 * values))
    np.testing.assert_array_equal(belief.moved(step).basis, belief.moved(again).basis)


def test_single_precision_stays_near_double_precision() -> None:
    belief = belief_of(300, 3, 0)
    single = belief.as_type("float32")
    population = Population(belief, Plan(8), NoiseStream(3), 1)
    noise = population.noise_rows()
    weights = np.random.default_rng(1).standard_normal(8)
    changed = []
    for some, rows in ((belief, noise), (single, noise.astype("float32"))):
        _, matrix = some.moments(NoiseBlock(population, rows), weights, weights)
        changed.append(some.moved(Step(np.zeros(300, some.mean.dtype), matrix.map(lambda values: 1e-3 * values))))
    assert changed[1].basis.dtype == changed[1].deviation.dtype == np.float32
    np.testing.assert_allclose(changed[1].covariance, changed[0].covariance, atol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rank": 5}, "rank: expected at most 4, the number of dimensions, got 5"),
        ({"basis": np.ones((4, 1)), "values": [1.0]}, "basis: expected orthonormal columns"),
        ({"basis": np.eye(4)[:, :2], "values": [1.0]}, r"basis: expected shape \(4, 1\)"),
        ({"basis": np.eye(4)[:, :1], "values": [-1.0]}, "values: expected positive numbers"),
        ({"basis": np.eye(4)[:, :2], "values": [1.0, 2.0], "rank": 1}, "basis: expected at most 1 columns, got 2"),
    ],
)
def test_bad_input_is_named(arguments, message: str) -> None:
    with pytest.raises(InputError, match=message):
        LowRankGaussian(np.zeros(4), 1.0, **arguments)


def test_spans_of_several_vectors_combine() -> None:
    rng = np.random.default_rng(0)
    vectors = np.linalg.qr(rng.standard_normal((20, 2)))[0]
    population = Population(LowRankGaussian(np.zeros(20), 1.0), Plan(3), NoiseStream(0), 0)
    span, total = Span.of(vectors, NoiseBlock(population), np.ones(3))
    extra = rng.standard_normal(20)
    F = np.column_stack([vectors, extra, population.noise_rows().T])
    wider = span.with_vector(extra)
    np.testing.assert_allclose(total, population.noise_rows().sum(axis=0))
    np.testing.assert_allclose(wider.gram, F.T @ F, atol=1e-12)
    coefficients = rng.standard_normal((6, 4))
    np.testing.assert_allclose(wider.combination(coefficients), F @ coefficients, atol=1e-12)
