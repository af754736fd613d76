r"""Encodings of the covariance and the chain rule between them.

An encoding is a parametrisation p of the covariance: the covariance itself, its Cholesky factor, its logarithm or its
inverse. The chain rule maps a gradient dl/dp to dl/dSigma. The step problem is linearised in (mean, covariance), so the
new distribution does not depend on the encoding of the gradient (Theorem 2 of the paper).

| encoding | diagonal | full |
| --- | --- | --- |
| covariance | sigma^2 | Sigma |
| cholesky | sigma | lower-triangular L, Sigma = L L^T |
| log-variance | log sigma^2 | matrix logarithm of Sigma |
| precision | 1 / sigma^2 | Sigma^-1 |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from cones.beliefs.gaussian.diagonal import DiagonalGaussian
from cones.beliefs.gaussian.full import FullGaussian
from cones.beliefs.gaussian.gaussian import Gaussian, Gradient
from cones.checks import check_array, check_finite, check_one_of, check_shape, check_vector
from cones.errors import InputError
from cones.types import Matrix, Vector

__all__ = ["ENCODINGS", "decode", "encode", "gradient_from_encoding", "gradient_to_encoding"]

G = TypeVar("G", bound=Gaussian)

ENCODINGS = ("covariance", "cholesky", "log-variance", "precision")


@dataclass(frozen=True)
class Encoding:
    """The maps of an encoding. `push` and `pull` take (covariance, gradient) and return a gradient."""

    encode: Callable[[Vector], Vector]
    decode: Callable[[Vector], Vector]
    push: Callable[[Vector, Vector], Vector]  # dl/dSigma -> dl/dp
    pull: Callable[[Vector, Vector], Vector]  # dl/dp -> dl/dSigma


def _identity(covariance: Vector) -> Vector:
    return covariance


def _same(covariance: Vector, gradient: Vector) -> Vector:
    return gradient


DIAGONAL = {
    "covariance": Encoding(_identity, _identity, _same, _same),
    "cholesky": Encoding(np.sqrt, np.square, lambda v, g: 2.0 * np.sqrt(v) * g, lambda v, h: h / (2.0 * np.sqrt(v))),
    "log-variance": Encoding(np.log, np.exp, lambda v, g: v * g, lambda v, h: h / v),
    "precision": Encoding(np.reciprocal, np.reciprocal, lambda v, g: -(v**2) * g, lambda v, h: -h / v**2),
}


def _symmetric(matrix: Matrix) -> Matrix:
    return 0.5 * (matrix + matrix.T)


def _inverse(matrix: Matrix) -> Matrix:
    return _symmetric(np.asarray(np.linalg.inv(matrix), np.float64))


def _cholesky(matrix: Matrix) -> Matrix:
    return np.asarray(np.linalg.cholesky(matrix), np.float64)


def _from_cholesky(factor: Matrix) -> Matrix:
    return np.tril(factor) @ np.tril(factor).T


def _push_cholesky(covariance: Matrix, gradient: Matrix) -> Matrix:
    # dSigma = dL L^T + L dL^T, so dl = <2 G L, dL>, and dL is lower triangular.
    return np.tril(2.0 * gradient @ _cholesky(covariance))


def _pull_cholesky(covariance: Matrix, gradient: Matrix) -> Matrix:
    # The reverse-mode derivative of the Cholesky factorisation (Murray, arXiv:1602.07527).
    factor = _cholesky(covariance)
    inner = np.tril(factor.T @ np.tril(gradient))
    inner[np.diag_indices_from(inner)] *= 0.5
    half = solve_triangular(factor, inner, lower=True, trans="T")
    return _symmetric(solve_triangular(factor, half.T, lower=True, trans="T").T)


def _function(matrix: Matrix, function: Callable[[Vector], Vector]) -> Matrix:
    values, vectors = np.linalg.eigh(matrix)
    return _symmetric((vectors * function(values)) @ vectors.T)


def _exponential_differences(logs: Vector) -> Matrix:
    """(e^x - e^y) / (x - y) for all pairs, e^x on the diagonal (the derivative of the matrix exponential)."""
    x, y = logs[:, None], logs[None, :]
    half = 0.5 * (x - y)
    safe = np.where(half == 0.0, 1.0, half)
    return np.asarray(np.exp(0.5 * (x + y)) * np.where(half == 0.0, 1.0, np.sinh(safe) / safe))


def _push_log(covariance: Matrix, gradient: Matrix) -> Matrix:
    values, vectors = np.linalg.eigh(covariance)
    inner = vectors.T @ gradient @ vectors * _exponential_differences(np.log(values))
    return _symmetric(vectors @ inner @ vectors.T)


def _pull_log(covariance: Matrix, gradient: Matrix) -> Matrix:
    values, vectors = np.linalg.eigh(covariance)
    inner = vectors.T @ gradient @ vectors / _exponential_differences(np.log(values))
    return _symmetric(vectors @ inner @ vectors.T)


def _push_precision(covariance: Matrix, gradient: Matrix) -> Matrix:
    return -_symmetric(covariance @ gradient @ covariance)


def _pull_precision(covariance: Matrix, gradient: Matrix) -> Matrix:
    precision = _inverse(covariance)
    return -_symmetric(precision @ gradient @ precision)


FULL = {
    "covariance": Encoding(_identity, _identity, _same, _same),
    "cholesky": Encoding(_cholesky, _from_cholesky, _push_cholesky, _pull_cholesky),
    "log-variance": Encoding(
        lambda matrix: _function(matrix, np.log), lambda matrix: _function(matrix, np.exp), _push_log, _pull_log
    ),
    "precision": Encoding(_inverse, _inverse, _push_precision, _pull_precision),
}


def encode(belief: Gaussian, encoding: str) -> Vector:
    """The covariance in the parameters of an encoding.

    Example:
        >>> encode(DiagonalGaussian([0.0], [4.0]), "precision")
        array([0.25])
    """
    return _maps(type(belief), encoding).encode(_covariance(belief))


def decode(kind: type[G], mean: ArrayLike, parameters: ArrayLike, encoding: str) -> G:
    """The belief of class `kind` with this mean and with `encode(belief, encoding) == parameters`."""
    maps = _maps(kind, encoding)
    array = check_array("parameters", parameters)
    if issubclass(kind, FullGaussian):
        size = check_vector("mean", mean).size
        check_shape("parameters", array, (size, size))
    check_finite("parameters", array)
    try:
        return kind(mean, maps.decode(array))  # type: ignore[call-arg]
    except np.linalg.LinAlgError as error:
        raise InputError(f"parameters: expected a valid {encoding} matrix, got an invalid one ({error})") from None


def gradient_to_encoding(belief: Gaussian, gradient: Gradient, encoding: str) -> Gradient:
    """Map a gradient from the covariance to the parameters of an encoding by the chain rule."""
    maps, covariance = _maps(type(belief), encoding), _covariance(belief)
    return Gradient(*_checked(gradient, covariance, lambda given: maps.push(covariance, given)))


def gradient_from_encoding(belief: Gaussian, gradient: Gradient, encoding: str) -> Gradient:
    """Map a gradient from the parameters of an encoding to the covariance by the chain rule."""
    maps, covariance = _maps(type(belief), encoding), _covariance(belief)
    return Gradient(*_checked(gradient, covariance, lambda given: maps.pull(covariance, given)))


def _maps(kind: type[Gaussian], encoding: str) -> Encoding:
    maps = FULL if issubclass(kind, FullGaussian) else DIAGONAL
    return maps[check_one_of("encoding", encoding, ENCODINGS)]


def _covariance(belief: Gaussian) -> Vector:
    if isinstance(belief, DiagonalGaussian):
        return belief.variance
    if isinstance(belief, FullGaussian):
        return belief.covariance
    raise InputError(f"belief: expected a DiagonalGaussian or a FullGaussian, got {belief!r}")


def _checked(gradient: Gradient, covariance: Vector, function: Callable[[Vector], Vector]) -> tuple[Vector, Vector]:
    mean = check_vector("gradient.mean", gradient.mean, len(covariance))
    given = check_array("gradient.covariance", gradient.covariance)  # triangular for cholesky
    check_shape("gradient.covariance", given, covariance.shape)
    check_finite("gradient.covariance", given)
    return mean, function(given)
