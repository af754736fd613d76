"""Matrices of the frame against dense linear algebra."""

import numpy as np
import pytest

from cones.beliefs import DiagonalMatrix, FrameMatrix, SpectralMatrix


def basis_of(rank: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(0).standard_normal((6, rank)))[0]


MATRICES = {
    "diagonal": DiagonalMatrix(np.array([3.0, -1.0, 0.5, 2.0, -0.25, 0.0])),
    "low rank": SpectralMatrix(np.array([3.0, -1.0]), basis_of(2), 0.5),
    "full rank": SpectralMatrix(np.arange(1.0, 7.0), basis_of(6), 0.5),
}
every_matrix = pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES)


def test_dense_is_the_matrix_that_the_parts_define() -> None:
    V = basis_of(2)
    expected = V @ np.diag([3.0, -1.0]) @ V.T + 0.5 * (np.eye(6) - V @ V.T)
    np.testing.assert_allclose(MATRICES["low rank"].dense(), expected, atol=1e-14)
    np.testing.assert_array_equal(MATRICES["diagonal"].dense(), np.diag([3.0, -1.0, 0.5, 2.0, -0.25, 0.0]))


@every_matrix
def test_spectrum_trace_norm_and_entries(matrix: FrameMatrix) -> None:
    dense = matrix.dense()
    np.testing.assert_allclose(np.sort(matrix.spectrum()), np.linalg.eigvalsh(dense), atol=1e-13)
    assert matrix.trace() == pytest.approx(np.trace(dense))
    assert matrix.norm() == pytest.approx(np.linalg.norm(dense))
    assert np.linalg.norm(matrix.entries()) == pytest.approx(np.linalg.norm(dense))


@every_matrix
def test_map_is_the_matrix_function(matrix: FrameMatrix) -> None:
    values, vectors = np.linalg.eigh(matrix.dense())
    expected = (vectors * np.exp(values)) @ vectors.T
    np.testing.assert_allclose(matrix.map(np.exp).dense(), expected, atol=1e-11)


@every_matrix
def test_entries_are_linear_in_the_matrix(matrix: FrameMatrix) -> None:
    doubled = matrix.map(lambda values: 2.0 * values + 1.0)
    identity = matrix.map(np.ones_like)
    np.testing.assert_allclose(doubled.entries(), 2.0 * matrix.entries() + identity.entries(), atol=1e-13)


@pytest.mark.parametrize("name", ["low rank", "full rank"])
def test_right_multiply_is_the_product(name: str) -> None:
    matrix = MATRICES[name]
    A = np.random.default_rng(1).standard_normal((4, 6))
    for other in (matrix, matrix.map(np.exp), SpectralMatrix(matrix.values, matrix.basis, 1.0)):
        np.testing.assert_allclose(other.right_multiply(A), A @ other.dense(), atol=1e-11)


@every_matrix
def test_with_spectrum_inverts_spectrum(matrix: FrameMatrix) -> None:
    again = matrix.with_spectrum(matrix.spectrum())
    np.testing.assert_array_equal(again.spectrum(), matrix.spectrum())
    np.testing.assert_allclose(again.dense(), matrix.dense())
