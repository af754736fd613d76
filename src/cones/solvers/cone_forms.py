r"""The convex balls as CVXPY expressions, in the frame of the belief; a diagonal belief has vectors for matrices.

    KL(new || old), linear in (m, R)                        1/2 ( m^T m + tr R - n - log det R )
    Renyi with alpha > 1 and chi-squared, in (m, R)         alpha/2 m^T S^-1 m - log det S / (2 (alpha - 1))
                                                            - 1/2 log det R,     S = alpha I + (1 - alpha) R
    KL(new || old), in (m, M = R + m m^T)                   1/2 ( tr M - n - log det [M m; m^T 1] )
    KL(old || new), in (h = R^-1 m, X = R^-1)               1/2 ( tr X + h^T X^-1 h - n - log det X )

The other balls of the Renyi family are not convex: they have no cone program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cones.divergences import KL, Ball
from cones.divergences.family import RenyiFamily

__all__ = ["Program", "program_of"]


class Program(NamedTuple):
    """An objective, the left side of the ball's constraint and its right side, and (m, R) from the variables."""

    objective: Any
    divergence: Any
    level: float
    solution: Callable[[], tuple[Any, Any]]
    further: tuple[Any, ...] = ()  # constraints beside the ball


def program_of(cp: Any, a: Any, b: Any, ball: Ball) -> Program | None:
    """The program of a ball; `b` is a vector for a diagonal belief. None if it has none."""
    of = ball.divergence
    if ball.chart == "mean_parameters":
        return _moments(cp, a, b, ball.radius)
    if ball.chart == "natural_parameters":
        return _natural(cp, a, b, ball.radius)
    if isinstance(of, KL):
        return _kl(cp, a, b, ball.radius)
    if isinstance(of, RenyiFamily) and of.form.q < 0.0:
        return _renyi(cp, a, b, of.form.c, of.level(ball.radius**2))
    return None


def _kl(cp: Any, a: Any, b: Any, radius: float) -> Program:
    n, diagonal = a.size, b.ndim == 1
    m, r = cp.Variable(n), _covariance(cp, n, diagonal)
    trace, log_det = _trace(cp, r), _log_det(cp, r)
    # Twice the divergence.
    return Program(
        a @ m + _inner(cp, b, r), cp.sum_squares(m) + trace - n - log_det, 2.0 * radius**2, lambda: (m.value, r.value)
    )


def _renyi(cp: Any, a: Any, b: Any, alpha: float, level: float) -> Program:
    n, diagonal = a.size, b.ndim == 1
    m, r = cp.Variable(n), _covariance(cp, n, diagonal)
    s = alpha + (1.0 - alpha) * r if diagonal else alpha * np.eye(n) + (1.0 - alpha) * r
    mean, further = _squares(cp, m, s)
    divergence = 0.5 * alpha * mean - 0.5 / (alpha - 1.0) * _log_det(cp, s) - 0.5 * _log_det(cp, r)
    return Program(a @ m + _inner(cp, b, r), divergence, level, lambda: (m.value, r.value), further)


def _moments(cp: Any, a: Any, b: Any, radius: float) -> Program:
    n = a.size
    if b.ndim == 1:
        m, r, moments = cp.Variable(n), cp.Variable(n), cp.Variable(n)
        divergence = 0.5 * (cp.sum(moments) - n - cp.sum(cp.log(r)))
        further: tuple[Any, ...] = (cp.square(m) + r <= moments,)
        return Program(a @ m + b @ (moments - 1.0), divergence, radius**2, lambda: (m.value, r.value), further)
    block = cp.Variable((n + 1, n + 1), symmetric=True)  # its determinant is that of R
    m, moments = block[:n, n], block[:n, :n]
    divergence = 0.5 * (cp.trace(moments) - n - cp.log_det(block))

    def solution() -> tuple[Any, Any]:
        return m.value, moments.value - np.outer(m.value, m.value)

    return Program(a @ m + _inner(cp, b, moments), divergence, radius**2, solution, (block[n, n] == 1.0,))


def _natural(cp: Any, a: Any, b: Any, radius: float) -> Program:
    n, diagonal = a.size, b.ndim == 1
    h, x = cp.Variable(n), _covariance(cp, n, diagonal)
    mean, further = _squares(cp, h, x)
    divergence = 0.5 * (_trace(cp, x) - n + mean - _log_det(cp, x))

    def solution() -> tuple[Any, Any]:
        covariance = 1.0 / x.value if diagonal else np.linalg.inv(x.value)
        return (covariance * h.value if diagonal else covariance @ h.value), covariance

    return Program(a @ h - _inner(cp, b, x), divergence, radius**2, solution, further)


def _covariance(cp: Any, n: int, diagonal: bool) -> Any:
    return cp.Variable(n) if diagonal else cp.Variable((n, n), PSD=True)


def _inner(cp: Any, b: Any, r: Any) -> Any:
    """<B, R - I>."""
    return b @ r - b.sum() if b.ndim == 1 else cp.trace(b @ r) - np.trace(b)


def _trace(cp: Any, r: Any) -> Any:
    return cp.sum(r) if r.ndim == 1 else cp.trace(r)


def _log_det(cp: Any, r: Any) -> Any:
    return cp.sum(cp.log(r)) if r.ndim == 1 else cp.log_det(r)


def _squares(cp: Any, m: Any, s: Any) -> tuple[Any, tuple[Any, ...]]:
    """m^T S^-1 m, and the constraints that it needs: z_i s_i >= m_i^2 as second-order cones."""
    if s.ndim == 2:
        return cp.matrix_frac(m, s), ()
    z = cp.Variable(m.size)
    return cp.sum(z), (cp.SOC(z + s, cp.vstack([2.0 * m, z - s]), axis=0),)
