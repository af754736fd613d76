import numpy as np
import pytest

from cones.beliefs import Spectral


@pytest.fixture
def low_rank() -> Spectral:
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((6, 2)))[0]
    return Spectral(np.array([3.0, -1.0]), basis, 0.5)


def test_dense_is_the_matrix_that_the_parts_define(low_rank: Spectral) -> None:
    V = low_rank.basis
    assert V is not None
    expected = V @ np.diag([3.0, -1.0]) @ V.T + 0.5 * (np.eye(6) - V @ V.T)
    np.testing.assert_allclose(low_rank.dense(), expected, atol=1e-14)


def test_spectrum_has_all_eigenvalues(low_rank: Spectral) -> None:
    np.testing.assert_allclose(np.sort(low_rank.spectrum()), np.linalg.eigvalsh(low_rank.dense()), atol=1e-14)


def test_map_is_the_matrix_function(low_rank: Spectral) -> None:
    values, vectors = np.linalg.eigh(low_rank.dense())
    expected = (vectors * np.exp(values)) @ vectors.T
    np.testing.assert_allclose(low_rank.map(np.exp).dense(), expected, atol=1e-13)


def test_right_multiply_is_the_product(low_rank: Spectral) -> None:
    A = np.random.default_rng(1).standard_normal((4, 6))
    np.testing.assert_allclose(low_rank.right_multiply(A), A @ low_rank.dense(), atol=1e-13)
    diagonal = Spectral(np.arange(6.0))
    np.testing.assert_allclose(diagonal.right_multiply(A), A @ np.diag(np.arange(6.0)))


@pytest.mark.parametrize("rank", [2, 6])
def test_with_spectrum_inverts_spectrum(rank: int) -> None:
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((6, rank)))[0]
    matrix = Spectral(np.arange(1.0, rank + 1), basis, 0.5)
    again = matrix.with_spectrum(matrix.spectrum())
    np.testing.assert_array_equal(again.spectrum(), matrix.spectrum())
    np.testing.assert_allclose(again.dense(), matrix.dense())
