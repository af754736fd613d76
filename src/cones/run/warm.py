r"""Warm starts: the first belief of a run from known evaluations, a result, a checkpoint or a belief.

From m points x_i with losses y_i: the best tenth of them, at least 4 + 3 log(n), has mean b and deviations d. From
1.5 n + 2 points on, a quadratic without mixed terms is fitted by ridge regression, in units of the points' own mean and
deviations s, to all of them and to the better half:

    y = c + sum_i ( g_i z_i + (h + h_i) z_i^2 / 2 )          sum_i h_i = 0

Slopes g_i are shrunk towards 0 and curvatures towards their common value h, as strongly as predicts best: each fifth of
the points is predicted from the other four, and r is the root mean square of the errors in the better half. Tau is
Kendall's rank correlation between predictions and losses. Where it is above 1/2, the mean is the minimum of the model,
at most 4 s from the mean of the points in each coordinate. The deviations make the model vary by r in all:

    sigma_i = s_i clip( sqrt( 2 r / (n (h + h_i)) ), 1/1000, 1 )       sum_i (h + h_i) (sigma_i / s_i)^2 / 2 = r

Otherwise mean and deviations are b and d; up to 60 dimensions, and with more points than dimensions in the best tenth,
the belief has their whole covariance.

The losses are used for this alone: they may be those of a similar function. The spread is then too narrow, for the
model knows nothing of the difference: `sigma0` widens it and keeps its shape.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult

from cones.beliefs import Belief, FullGaussian, Gaussian
from cones.checks import check_array, check_positive
from cones.defaults import FULL_UP_TO, path_popsize
from cones.errors import InputError
from cones.estimators.quadratic import rank_correlation
from cones.incremental import known_evaluations
from cones.run.checkpoint import read
from cones.space.bounds import box_from
from cones.types import Matrix, Vector

__all__ = ["WarmStart", "start_from", "warm_start"]

LEAST_POINTS = 4
BEST_SHARE = 0.1
# The model: trusted from this rank correlation on, and its minimum within this many deviations of the points.
TRUSTED, REACH = 0.5, 4.0
# The least points per coordinate for a model, and the most per number of it that are used.
LEAST_PER_COORDINATE, MOST_PER_NUMBER = 1.5, 20
FOLDS = 5
# How strongly slopes and differences of curvatures are shrunk; beyond MANY dimensions the first two alone are tried.
RIDGES = ((0.0, 0.0), (0.01, 10.0), (0.0, 0.1), (0.01, 1.0), (0.1, 10.0), (0.3, 100.0), (1.0, 10.0), (1.0, 100.0))
MANY = 300
RIDGE = 1e-9  # so that the equations have a solution
NARROWEST = 1e-3
# Share of the diagonal in the covariance of the best points, so that no axis is lost.
DIAGONAL = 0.05
# A belief alone does not know the names of a space.
IN_SPACE = (
    "initial: expected a run over vectors, got one in a space; start from its best values by "
    "x0=space.starting_at(result.x)"
)

Initial = Any  # (X, y), an OptimizeResult, a Belief, or the path of a checkpoint


def start_from(
    initial: Initial, sigma0: float | None = None, bounds: Any = None
) -> tuple[Vector | Belief, Vector | None]:
    """x0 and sigma0 of a run that begins with what is known: `cones.CoNES(*cones.start_from((X, y)))`.

    Args:
        initial: known evaluations (X, y), one point per row; a result of `minimize`; the path of a checkpoint; or a
            belief. The losses y may be those of a similar function.
        sigma0: a number to which the spread is scaled; its shape stays. For evaluations of a similar function, give
            the distance per coordinate at which the minimum may be.
        bounds: points outside are left out. A belief whose mean is outside is refused.

    Example:
        >>> import numpy as np, cones
        >>> X = np.random.default_rng(0).normal(size=(200, 10))
        >>> x0, sigma0 = cones.start_from((X, ((X - 0.5) ** 2).sum(axis=1)))
        >>> bool(np.abs(x0 - 0.5).max() < 0.01)
        True
    """
    return warm_start(initial, sigma0, bounds)[:2]


class WarmStart(NamedTuple):
    """Where a run begins, and what its first rounds of evaluations begin with; see `cones.run.refine`.

    Args:
        x0, sigma0: as `start_from` returns them.
        curvatures: of the model that they come from, per coordinate; None if they do not come from one.
    """

    x0: Vector | Belief
    sigma0: Vector | None
    curvatures: Vector | None = None


def warm_start(initial: Initial, sigma0: float | None, bounds: Any) -> WarmStart:
    """As `start_from`, with the curvatures of the model."""
    if isinstance(initial, (Belief, OptimizeResult, str, PathLike)):
        belief = _belief_of(initial)
        box_from(bounds, belief.mean)
        return WarmStart(belief if sigma0 is None else _scaled(belief, sigma0), None)
    try:
        X, y = initial
    except (TypeError, ValueError):
        raise InputError(
            f"initial: expected (X, y), a result, a checkpoint's path or a belief, got {type(initial).__name__}"
        ) from None
    points = check_array("initial X", X)
    if points.ndim != 2:
        raise InputError(f"initial X: expected points, one per row, got shape {points.shape}")
    points, losses = known_evaluations("initial X", points, "initial y", y, points.shape[1])
    if bounds is not None:
        points, losses = _inside(points, losses, bounds)
    if len(losses) < LEAST_POINTS:
        where = " within bounds" if bounds is not None else ""
        raise InputError(f"initial: expected at least {LEAST_POINTS} points{where}, got {len(losses)}")
    if not (losses < math.inf).any():
        raise InputError("initial y: expected at least one finite loss, got none")
    start, deviations, curvatures = _fitted(points, losses)
    if bounds is not None:
        start = _clipped(start, bounds)
    if sigma0 is None:
        return WarmStart(start, deviations, curvatures)
    if isinstance(start, Belief):
        return WarmStart(_scaled(start, sigma0), None)
    assert deviations is not None
    spread = math.sqrt(float(np.mean(deviations**2)))
    return WarmStart(start, deviations * (check_positive("sigma0", sigma0) / spread), curvatures)


def _belief_of(initial: Any) -> Belief:
    if isinstance(initial, Belief):
        return initial
    if isinstance(initial, OptimizeResult):
        belief = initial.get("belief")
        if not isinstance(belief, Belief):
            raise InputError("initial: expected a result of cones, got one without a belief")
        if isinstance(initial.get("x"), Mapping):
            raise InputError(IN_SPACE)
        return belief
    if not os.path.exists(initial):
        raise InputError(
            f"initial: expected the path of a checkpoint, got {os.fspath(initial)!r}, which does not exist"
        )
    strategy = read(initial)[0]
    if strategy.space is not None:
        raise InputError(IN_SPACE)
    return strategy.best_belief()


def _scaled(belief: Belief, sigma0: float) -> Belief:
    if not isinstance(belief, Gaussian):
        raise InputError(f"sigma0: expected none with a {type(belief).__name__}, got {sigma0!r:.60}")
    return belief.restarted(belief.mean, check_positive("sigma0", sigma0) / belief.spread())


def _inside(points: Matrix, losses: Vector, bounds: Any) -> tuple[Matrix, Vector]:
    box = box_from(bounds, _clipped(points[0], bounds))
    assert box is not None
    inside = ((points >= box.lower) & (points <= box.upper)).all(axis=1)
    return points[inside], losses[inside]


def _clipped(start: Any, bounds: Any) -> Any:
    """A start within bounds."""
    mean = start.mean if isinstance(start, Belief) else start
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):
        low, high = np.broadcast_to(bounds.lb, mean.shape), np.broadcast_to(bounds.ub, mean.shape)
    else:
        box_from(bounds, mean) if np.shape(bounds)[:1] != mean.shape else None  # its message
        low = np.array([-np.inf if pair[0] is None else pair[0] for pair in bounds])
        high = np.array([np.inf if pair[1] is None else pair[1] for pair in bounds])
    inside = np.clip(mean, low, high)
    if not isinstance(start, FullGaussian):
        return inside
    return start if np.array_equal(inside, mean) else start.restarted(inside, 1.0)


def _fitted(points: Matrix, losses: Vector) -> WarmStart:
    """Mean, or a belief with a full covariance, and deviations from evaluated points."""
    n, order = points.shape[1], np.argsort(losses, kind="stable")
    finite = order[: int((losses < math.inf).sum())]
    by_model = _minimum_of_model(points[finite], losses[finite])
    if by_model is not None:
        return by_model
    count = min(len(order), max(math.ceil(BEST_SHARE * len(order)), path_popsize(n), LEAST_POINTS))
    best = points[order[:count]]
    mean, spread = best.mean(axis=0), _deviations(best)
    if n <= FULL_UP_TO and count > n:
        scatter = np.cov(best, rowvar=False).reshape(n, n)
        return WarmStart(FullGaussian(mean, (1.0 - DIAGONAL) * scatter + DIAGONAL * np.diag(spread**2)), None)
    return WarmStart(mean, spread)


def _deviations(points: Matrix) -> Vector:
    """Standard deviations of the coordinates; of one that does not vary, that of the others, or 1."""
    deviations = points.std(axis=0)
    typical = float(np.median(deviations[deviations > 0.0])) if (deviations > 0.0).any() else 1.0
    return np.where(deviations > 1e-12 * (1.0 + np.abs(points).max(axis=0)), deviations, typical)


def _minimum_of_model(points: Matrix, losses: Vector) -> WarmStart | None:
    """Mean and deviations from a separable quadratic through sorted points; None if it cannot be trusted."""
    m, n = points.shape
    if m < LEAST_PER_COORDINATE * n + 2 or not float(np.ptp(losses)) > 0.0:
        return None
    most = MOST_PER_NUMBER * (2 * n + 1)
    points, losses = points[:most], losses[:most]
    m, better = len(losses), max(len(losses) // 2, LEAST_POINTS)
    models = [_model(points, losses, used, better) for used in {m, max(better, 3 * n + 2)} if used <= m]
    model = min(models, key=lambda found: found.error)
    if not model.tau > TRUSTED:
        return None
    slopes, curvatures = model.slopes, model.curvatures
    with np.errstate(divide="ignore", invalid="ignore"):
        lowest = np.where(curvatures > 0.0, -slopes / curvatures, -np.sign(slopes) * math.inf)
    lowest = np.clip(np.nan_to_num(lowest, nan=0.0, posinf=REACH, neginf=-REACH), -REACH, REACH)
    with np.errstate(divide="ignore", invalid="ignore"):
        wide = np.sqrt(2.0 * model.error / (n * np.maximum(curvatures, 0.0)))
    scale = model.scale
    wide = scale * np.clip(np.nan_to_num(wide, nan=1.0), NARROWEST, 1.0)
    return WarmStart(model.centre + scale * lowest, wide, curvatures / scale**2)


class _Model(NamedTuple):
    """A separable quadratic in units of the points, and how well it predicts points that it has not seen."""

    centre: Vector
    scale: Vector
    slopes: Vector
    curvatures: Vector
    error: float
    tau: float


def _model(points: Matrix, losses: Vector, used: int, better: int) -> _Model:
    """The model of the first `used` of sorted points with the lowest error of prediction on the first `better`."""
    m, n = points.shape
    centre, scale = points[:used].mean(axis=0), _deviations(points[:used])
    middle, size = float(np.median(losses)), float(np.abs(losses - np.median(losses)).max())
    target = (losses - middle) / size
    z = (points - centre) / scale
    squares = 0.5 * z * z
    both = squares.sum(axis=1, keepdims=True)
    features = np.hstack([np.ones((m, 1)), both, z, squares - both / n])
    is_used = np.arange(m) < used
    folds = [(np.arange(m) % FOLDS == k) for k in range(FOLDS)]
    grams = [features[fold & is_used].T @ features[fold & is_used] for fold in folds]
    sides = [features[fold & is_used].T @ target[fold & is_used] for fold in folds]
    gram, side = sum(grams[1:], grams[0]), sum(sides[1:], sides[0])
    best: tuple[float, float, Vector] | None = None
    for of_slopes, of_curvatures in RIDGES if n <= MANY else RIDGES[:2]:
        ridge = np.concatenate([np.full(2, RIDGE), np.full(n, RIDGE + of_slopes), np.full(n, RIDGE + of_curvatures)])
        predicted = np.empty(m)
        for fold, part, of_part in zip(folds, grams, sides, strict=True):
            seen = used - int((fold & is_used).sum())
            predicted[fold] = features[fold] @ np.linalg.solve(gram - part + np.diag(seen * ridge), side - of_part)
        error = math.sqrt(float(np.mean((predicted - target)[:better] ** 2)))
        if best is None or error < best[0]:
            best = error, rank_correlation(predicted, target), ridge
    assert best is not None
    error, tau, ridge = best
    numbers = size * np.linalg.solve(gram + np.diag(used * ridge), side)
    slopes, own = numbers[2 : 2 + n], numbers[2 + n :]
    return _Model(centre, scale, slopes, numbers[1] + own - own.mean(), size * error, tau)
