r"""The first evaluations of a warm start: a model of the known points is moved to where the function is.

Known evaluations have given curvatures H, one per coordinate, and a start mu with deviations s. Near the start, or on a
similar function, slopes differ most, and curvatures up to a factor. A round evaluates m = 1.3 n + 10 points
mu + s xi, with xi ~ N(0, I), and fits n + 2 numbers by ridge regression

    f(mu + s xi) = c + kappa/2 sum_i w_i xi_i^2 + sum_i g_i xi_i          w = H s^2, scaled to a mean of 1

The strength of the ridge has the lowest error e of leave-one-out predictions; v is the standard deviation of the
losses. The next mean is the minimum of the model, and the next deviations are as wide as what is not known of it: the
model varies by e in all, and of the step the share e / v is unexplained,

    d = - g / (kappa w)         mu <- mu + s d         |d| the root mean square of d
    s <- s clip( sqrt( 2 e / (n kappa) + (|d| e / v)^2 ), 0.03, 1 ),  or s min(|d|, 3) if |d| > 2

Rounds end, and the belief takes over, when predictions explain less than 3/10 of the variance, when the minimum of the
model is no better, when it is better by less than 3/10 v, or after 12. On a quadratic without mixed terms one round is
enough, wherever its minimum has moved to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from cones.beliefs import Gaussian
from cones.evaluate import Evaluator
from cones.incremental import IncrementalStrategy
from cones.run.iterate import Observer, evaluations_left
from cones.strategy import Strategy
from cones.types import Matrix, Vector

__all__ = ["Refinement", "refines"]

# Up to 40 dimensions the default estimator has a model of its own; beyond 1000 the equations take too long.
FEWEST, MOST = 41, 1000
MOST_ROUNDS = 12
EXPLAINED, MOVED = 0.3, 0.3
RIDGES = (1e-9, 1e-3, 1e-2, 0.1, 1.0)
NARROWEST, WIDEST = 0.03, 3.0  # of s, in one round
FAR = 2.0  # a step after which s is widened, in units of s


def refines(strategy: Strategy) -> bool:
    """True if a warm start of this strategy is refined."""
    belief = strategy.state.belief
    known = isinstance(strategy, IncrementalStrategy) and isinstance(belief, Gaussian) and strategy.space is None
    return known and strategy.state.lagrangian is None and FEWEST <= belief.dim <= MOST


class Refinement(Observer):
    """Refines the start before the first iteration, where the budget has room for it.

    Args:
        curvatures: H, from the known evaluations.
        evaluated: called after each round with its name.
    """

    def __init__(
        self, strategy: Strategy, evaluator: Evaluator, curvatures: Vector, evaluated: Callable[[str], None]
    ) -> None:
        self._strategy, self._evaluator, self._evaluated = strategy, evaluator, evaluated
        highest = float(curvatures.max())
        self._curvatures = np.maximum(curvatures, 1e-9 * highest) if highest > 0.0 else None

    def begun(self) -> None:
        strategy, state = self._strategy, self._strategy.state
        if state.iteration or state.evaluations != 1 or state.best_fun == math.inf or self._curvatures is None:
            return
        assert isinstance(strategy, IncrementalStrategy)
        rng, size = np.random.default_rng((strategy.noise.seed, 1)), math.ceil(1.3 * state.belief.dim) + 10
        loss, rounds = state.best_fun, 0
        while evaluations_left(strategy) >= size + 1 + strategy.popsize and strategy.stop() is None:
            following = self._round(strategy, loss, rng.standard_normal((size, state.belief.dim)))
            rounds += 1
            if following is None or rounds == MOST_ROUNDS:
                return
            loss = following

    def _round(self, strategy: IncrementalStrategy, loss: float, noise: Matrix) -> float | None:
        """A round from a mean with this loss; the loss of the next mean, or None if another one is not worth it."""
        belief = strategy.state.belief
        assert isinstance(belief, Gaussian)
        assert self._curvatures is not None
        mean, deviations = belief.mean, belief.standard_deviations()
        points, losses = self._evaluate(strategy, mean + deviations * noise)
        finite = np.isfinite(losses)
        noise, losses = ((points - mean) / deviations)[finite], losses[finite]
        if len(losses) < belief.dim + 2 or not (spread := float(losses.std())) > 0.0:
            return None
        model = _model(noise, losses - loss, self._curvatures * deviations**2)
        if model is None or model.error**2 > (1.0 - EXPLAINED) * spread**2:
            return None
        lowest = (mean + deviations * model.lowest).astype(mean.dtype)
        if strategy.box is not None:
            lowest = np.clip(lowest, strategy.box.lower, strategy.box.upper)
        reached = float(self._evaluate(strategy, lowest[None, :])[1][0])
        if not reached < loss:
            return None
        step = math.sqrt(float(np.mean(model.lowest**2)))
        varies, unexplained = math.sqrt(2.0 * model.error / (belief.dim * model.scale)), model.error / spread
        factor = min(step, WIDEST) if step > FAR else max(NARROWEST, min(1.0, math.hypot(varies, unexplained * step)))
        strategy.state = replace(strategy.state, belief=belief.restarted(lowest, factor))
        return reached if loss - reached > MOVED * spread else None

    def _evaluate(self, strategy: IncrementalStrategy, points: Matrix) -> tuple[Matrix, Vector]:
        """Points within bounds and their losses, which are counted."""
        points = np.ascontiguousarray(points if strategy.box is None else strategy.box.reflect(points))
        losses: Vector = self._evaluator.losses(points)
        self._evaluated("the first model")
        strategy.count_aside(points, losses)
        return points, losses


class _Model(NamedTuple):
    """The minimum in units of the deviations, kappa, and the error of prediction."""

    lowest: Vector
    scale: float
    error: float


def _model(noise: Matrix, losses: Vector, weights: Vector) -> _Model | None:
    """The model of a round; None if it has no minimum."""
    weights = weights / weights.mean()
    features = np.hstack([np.ones((len(noise), 1)), 0.5 * (noise**2 @ weights)[:, None], noise])
    gram, best = features.T @ features, None
    for ridge in RIDGES:
        penalty = np.concatenate([[0.0, 0.0], np.full(len(weights), ridge * len(noise))])
        try:
            solved = np.linalg.solve(gram + np.diag(penalty), features.T)
        except np.linalg.LinAlgError:
            continue
        numbers = solved @ losses
        own = np.einsum("ij,ji->i", features, solved)  # of each point in its own prediction
        errors = (losses - features @ numbers) / np.maximum(1.0 - own, 1e-9)
        error = math.sqrt(float(np.mean(errors**2)))
        if best is None or error < best[0]:
            best = error, numbers
    if best is None or not best[1][1] > 0.0:
        return None
    error, numbers = best
    return _Model(-numbers[2:] / (numbers[1] * weights), float(numbers[1]), error)
