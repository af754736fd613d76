r"""Convex steps whose certificates are checked from the definitions.

In the frame of the belief, with the gradient (a, b), the step (m, s) and the multiplier l:

    P = a.m + sum b (e^s - 1)        KL = 1/2 ( |m|^2 + sum( e^s - 1 - s ) ) <= radius^2
    D = l radius^2 + |a|^2 / (2 l) + l/2 sum( log r - 1 + 1/r ),     1/r = 1 - 2 b / l

Every l above max(0, 2 b) gives a bound D >= P on all steps in the ball. A step is right if it is in the ball and D - P
is within rounding.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import cones
from benchmarks.attack import Row
from cones.beliefs import DiagonalMatrix, FrameGradient
from cones.divergences import KL, Ball
from cones.solvers import Dual

__all__ = ["campaign"]

TOLERANCE = 1e-7


def campaign(count: int, rng: np.random.Generator) -> list[Row]:
    """`count` steps: nine of ten in the frame, the others of a belief with a full covariance."""
    few = count // 10
    with np.errstate(all="ignore"):
        in_frame = sum(not _frame_step_holds(rng) for _ in range(count - few))
        full = sum(not _full_step_holds(rng) for _ in range(few))
    return [Row("convex step in the frame", count - few, in_frame), Row("convex step, full covariance", few, full)]


def _numbers(rng: np.random.Generator, size: int) -> Any:
    """Numbers of very different sizes, some of them zero or equal."""
    values = rng.standard_normal(size) * 10.0 ** rng.uniform(-8, 0, size)
    values[rng.random(size) < 0.1] = 0.0
    if rng.random() < 0.1:
        values[:] = values[0]
    return values * 10.0 ** rng.integers(-100, 100)


def _certified(a: Any, b: Any, m: Any, s: Any, multiplier: float, radius: float) -> bool:
    """True if the step is in the ball and no other step in it is better."""
    energy = radius * radius
    scale = max(float(np.abs(a).max()), float(np.abs(b).max()))
    if scale == 0.0:
        return not m.any() and not s.any()
    a, b, multiplier = a / scale, b / scale, multiplier / scale
    kl = 0.5 * float(m @ m + (np.expm1(s) - s).sum())
    primal = float(a @ m + b @ np.expm1(s))
    if multiplier == 0.0:  # the ball reaches beyond floats: all variances fall to zero, which gains at most sum |b|
        return kl <= energy and not a.any() and bool((b <= 0.0).all()) and primal >= (1.0 - TOLERANCE) * -float(b.sum())
    inverse = 1.0 - 2.0 * b / multiplier
    if not (kl <= energy * (1.0 + TOLERANCE) and multiplier > 0.0 and (inverse > 0.0).all() and math.isfinite(primal)):
        return False
    terms = -np.log1p(-2.0 * b / multiplier) - 2.0 * b / multiplier
    dual = multiplier * energy + float(a @ a) / (2.0 * multiplier) + 0.5 * multiplier * float(terms.sum())
    return abs(dual - primal) <= TOLERANCE * dual


def _frame_step_holds(rng: np.random.Generator) -> bool:
    size, radius = int(rng.integers(1, 9)), 10.0 ** float(rng.uniform(-4, 2))
    a, b = _numbers(rng, size), _numbers(rng, size)
    if rng.random() < 0.5:
        b *= 10.0 ** float(np.log10(np.abs(a).max() or 1.0) - np.log10(np.abs(b).max() or 1.0))  # of one size
    try:
        step = Dual().solve(FrameGradient(a, DiagonalMatrix(b)), Ball(KL(), radius))
        return step.status.ok and _certified(a, b, step.shift, step.log_ratio.values, step.multiplier, radius)
    except Exception:
        return False


def _full_step_holds(rng: np.random.Generator) -> bool:
    size, radius = int(rng.integers(1, 6)), 10.0 ** float(rng.uniform(-3, 1))
    square, gradient = rng.standard_normal((size, size)), rng.standard_normal((size, size))
    old = cones.FullGaussian(rng.standard_normal(size), square @ square.T + 0.1 * np.eye(size))
    mean, matrix = rng.standard_normal(size), gradient + gradient.T
    try:
        step = cones.solve_step(old, cones.Gradient(mean, matrix), radius)
        new = step.belief
        # KL and gain from their definitions, without the frame.
        precision = np.linalg.inv(old.covariance)
        shift, ratio = new.mean - old.mean, precision @ new.covariance
        kl = 0.5 * (np.trace(ratio) - size - np.linalg.slogdet(ratio)[1] + shift @ precision @ shift)
        gain = mean @ shift + np.sum(matrix * (new.covariance - old.covariance))
        # The bound from the eigenvalues of L^T G L.
        factor = np.linalg.cholesky(old.covariance)
        a, values = factor.T @ mean, np.linalg.eigvalsh(factor.T @ matrix @ factor)
        multiplier, share = step.multiplier, 2.0 * values / step.multiplier
        bound = (
            multiplier * radius**2 + a @ a / (2.0 * multiplier) - 0.5 * multiplier * (np.log1p(-share) + share).sum()
        )
        return bool(kl <= radius**2 * (1.0 + 1e-6) and abs(bound - gain) <= 1e-6 * bound and step.status.ok)
    except Exception:
        return False
