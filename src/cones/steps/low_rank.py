r"""First the diagonal, then axes: a `LowRankGaussian` learns axes once the run shows that a diagonal does not suffice.

**While the diagonal leads**, steps are those of `cones.Balls`. A path of the directions v, |v| = 1, of the mean's
gradient averages about `horizon` n evaluations:

    p <- (1 - c) p + sqrt(c (2 - c)) v,     c = N / (horizon n),     evidence = |p|^2 / (its mean if v were independent)

The mean's radius makes successive directions independent. A path far longer than noise therefore shows a direction in
which the belief is always too narrow: a valley that no diagonal fits. On ripples the path is short. Axes are learnt as
soon as the evidence exceeds `threshold` and the diagonal has nothing more to learn: the radius of its shape, in units
of a natural gradient step, is below 1/4. If that radius has been larger before, the diagonal has been worth learning:
four times the evidence is needed, and a tenth of the largest possible, 2 / c (all directions equal). If not, the
diagonal is noise, and is reset to that of the start.

**Then D is frozen** up to its scale, and the step is the exact KL step at multiplier 1 with a path. In the frame of the
belief, with the estimate (a, B) scaled so that the weights of the better half sum to 1, and chi = E|N(0, I)|:

    m = -a
    p <- (1 - c_s) p - sqrt(c_s (2 - c_s)) a / (its deviation per coordinate, if losses were independent of candidates)
    R = ( I - c_1 (p p^T - I) + 2 c_mu B )^-1
    log sigma grows by (c_s / d_s) (|p| / chi - 1)

    mu = 0.27 N,   c_s = (mu + 2) / (n + mu + 5),   d_s = 1 + c_s,   f = n (k + 2) + mu,   c_1 = 2 / f,
    c_mu = 2 (mu - 7/4 + 1/mu) / f

f is the number of degrees of freedom of k axes: few axes allow large rates. Beyond 4 + 4 log n axes, more of them do
not lower the rates: k is at most that in f. (Akimoto & Hansen, Projection-Based
Restricted Covariance Matrix Adaptation for High Dimension, 2016, learn D and V together; Loshchilov, LM-CMA, 2017, V
alone.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cones.beliefs import (
    DiagonalGaussian,
    DiagonalMatrix,
    FrameGradient,
    Gaussian,
    LowRankGaussian,
    SpannedMatrix,
    SpectralMatrix,
    Step,
    StepStatus,
)
from cones.checks import check_kind, check_non_negative, check_positive, store
from cones.component import Storable, setting
from cones.estimators import Estimate
from cones.kernels.spans import elementwise, inner
from cones.radius import PathLength
from cones.steps.balls import Balls, BallsState
from cones.steps.rule import IterationInfo, StepRule
from cones.types import Vector

__all__ = ["LowRank", "LowRankState"]

# The sum of the better half's normal scores, and the selected parents that they are worth, per candidate.
HALF, PARENTS = 0.3989, 0.27
# The shape's radius, in units of a natural gradient step, from which on the diagonal is learning.
LEARNING = 0.25
# A diagonal that has learnt is probably right: so many times the evidence is needed to freeze it, and this part of the
# largest possible.
SO_MUCH_MORE, PART = 4.0, 0.1
# Distance from the pole of R, and the largest change of log sigma.
NEAREST_POLE, LARGEST_GROWTH = 0.2, 1.0


@dataclass(frozen=True)
class LowRankState(Storable):
    """While the diagonal leads, the states of the balls and of the evidence; then the path, in the frame.

    Attributes:
        balls: the state of the balls.
        directions: the path of the mean's directions.
        expected: the mean of its squared length if directions were independent.
        start: the deviations at the start.
        learnt: True if the shape's radius has ever been large.
        path: the evolution path; None while the diagonal leads.
    """

    balls: BallsState | None = None
    directions: Vector | None = None
    expected: float = 0.0
    start: Vector | None = None
    learnt: bool = False
    path: Vector | None = None


@dataclass(frozen=True)
class LowRank(StepRule):
    """Steps of a `LowRankGaussian`: the diagonal first, then axes, if the run shows that a diagonal does not suffice.

    Other Gaussians take the steps of the balls throughout.
    """

    name = "low_rank"
    beliefs = (Gaussian,)

    threshold: float = setting(2.0, "Evidence of the mean's path from which on axes are learnt; 0: at once.")
    patience: float = setting(30.0, "Evaluations per dimension before axes may be learnt.")
    horizon: float = setting(10.0, "Evaluations per dimension that the evidence averages over.")
    rate: float = setting(1.0, "Learning rate of the axes, relative to the rates above.")
    balls: Balls = setting(Balls(mean=PathLength(0.3, largest=1e6)), "Steps while the diagonal leads.", kind="step")

    def __post_init__(self) -> None:
        check_kind("balls", self.balls, Balls)
        store(
            self,
            threshold=check_non_negative("threshold", self.threshold),
            patience=check_non_negative("patience", self.patience),
            horizon=check_positive("horizon", self.horizon),
            rate=check_positive("rate", self.rate),
        )

    def propose(
        self, state: LowRankState | None, belief: Gaussian, estimate: Estimate, info: IterationInfo
    ) -> tuple[Step[Any], LowRankState]:
        if not isinstance(belief, LowRankGaussian):
            step, balls = self.balls.propose(None if state is None else state.balls, belief, estimate, info)
            return step, LowRankState(balls)
        if state is None:
            state = LowRankState(path=None if self.threshold else np.zeros_like(belief.mean))
        if state.path is None and not belief.values.size:
            return self._diagonal_step(state, belief, estimate, info)
        path = np.zeros_like(belief.mean) if state.path is None else state.path
        return self._low_rank_step(path, belief, estimate)

    def _diagonal_step(
        self, state: LowRankState, belief: LowRankGaussian, estimate: Estimate, info: IterationInfo
    ) -> tuple[Step[Any], LowRankState]:
        n, gradient = belief.dim, estimate.gradient
        matrix = gradient.covariance
        if not isinstance(matrix, DiagonalMatrix):  # the first iteration: the shape has not been estimated by itself
            matrix = DiagonalMatrix(np.full(n, matrix.trace() / n, belief.mean.dtype))
            estimate = estimate._replace(gradient=FrameGradient(gradient.mean, matrix))
        diagonal = DiagonalGaussian.from_deviation(belief.mean, belief.deviation)
        step, balls = self.balls.propose(state.balls, diagonal, estimate, info)
        directions, expected = self._watched(state, gradient.mean, estimate.effective_samples)
        evidence = inner(directions, directions) / expected if expected else 0.0
        learning = step.columns["shape_radius"] >= LEARNING * math.sqrt(2.0 * n / estimate.effective_samples)
        state = LowRankState(
            balls,
            directions,
            expected,
            belief.deviation if state.start is None else state.start,
            state.learnt or learning,
        )
        step = step._replace(columns={**step.columns, "axes": 0.0, "evidence": evidence})
        needed = self.threshold
        if state.learnt:
            needed = max(SO_MUCH_MORE * needed, PART * 2.0 / self._rate(n, estimate.effective_samples))
        if learning or info.spent < self.patience * n or evidence <= needed:
            return step, state
        if not state.learnt:
            step = step._replace(log_ratio=_forgotten(belief.deviation, state.start, step.log_ratio.trace()))
        return step, LowRankState(path=np.zeros_like(belief.mean))

    def _watched(self, state: LowRankState, gradient: Vector, samples: float) -> tuple[Vector, float]:
        """The path of the mean's directions with one more, and the mean of its squared length by chance."""
        path = np.zeros_like(gradient) if state.directions is None else state.directions
        length = math.sqrt(inner(gradient, gradient))
        if not 0.0 < length < math.inf:
            return path, state.expected
        rate = self._rate(gradient.size, samples)
        keep, add = 1.0 - rate, math.sqrt(rate * (2.0 - rate)) / length
        path = elementwise(lambda p, v: keep * p + add * v, path, gradient)
        return path, keep * keep * state.expected + rate * (2.0 - rate)

    def _rate(self, n: int, samples: float) -> float:
        """c, such that the path of directions averages about `horizon` n evaluations."""
        return min(0.5, samples / (self.horizon * n))

    def _low_rank_step(
        self, path: Vector, belief: LowRankGaussian, estimate: Estimate
    ) -> tuple[Step[Any], LowRankState]:
        n, samples, gradient = belief.dim, estimate.effective_samples, estimate.gradient
        matrix, noise = gradient.covariance, estimate.noise.mean / math.sqrt(n)  # per coordinate of a
        mu = max(PARENTS * samples, 1.0)
        forgetting = (mu + 2.0) / (n + mu + 5.0)
        length, growth = math.nan, 0.0
        if noise > 0.0:  # otherwise all losses are tied
            keep, add = 1.0 - forgetting, -math.sqrt(forgetting * (2.0 - forgetting)) / noise
            path = elementwise(lambda p, part: keep * p + add * part, path, gradient.mean)
            chi = math.sqrt(n) * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n * n))
            length = math.sqrt(inner(path, path)) / chi
            growth = min(forgetting / (1.0 + forgetting) * (length - 1.0), LARGEST_GROWTH)
        unit = 1.0 / (HALF * noise * math.sqrt(samples)) if noise > 0.0 else 0.0
        freedom = n * (min(belief.rank, 4.0 + 4.0 * math.log(n)) + 2.0) + mu
        of_path = min(self.rate * 2.0 / freedom, 0.5)
        of_all = min(self.rate * 2.0 * max(mu - 1.75 + 1.0 / mu, 0.25) / freedom, 0.5)

        # The ascent step is the negative of the descent step: -log R - 2 growth.
        if not unit:
            log_ratio: Any = matrix.map(np.zeros_like)
        elif isinstance(matrix, DiagonalMatrix):  # the belief has been diagonal up to now
            log_ratio = SpectralMatrix(np.zeros(0), np.zeros((n, 0), belief.mean.dtype), -2.0 * growth)
        else:
            poles = matrix.map(lambda values: 1.0 + of_path + 2.0 * of_all * unit * values)
            poles = _plus_outer(poles, path, -of_path)
            log_ratio = poles.map(lambda values: np.log(np.maximum(values, NEAREST_POLE)) - 2.0 * growth)
        shift: Vector = elementwise(lambda part: unit * part, gradient.mean)
        columns = {
            "mean_radius": math.sqrt(0.5 * inner(shift, shift)),
            "scale_radius": math.sqrt(n) * abs(growth),
            "path_length": length,
            "axes": float(belief.values.size),
        }
        status = StepStatus.OPTIMAL if unit else StepStatus.ZERO_GRADIENT
        step: Step[Any] = Step(belief.from_frame(shift), log_ratio, status, multiplier=1.0, gap=0.0, columns=columns)
        return step, LowRankState(path=path)


def _forgotten(deviation: Vector, start: Vector | None, trace: float) -> DiagonalMatrix:
    """The ascent step from deviations to multiples of those at the start, with a trace."""
    logs = 2.0 * np.log(deviation / (deviation if start is None else start))
    return DiagonalMatrix(logs + (trace / logs.size - float(logs.mean())))


def _plus_outer(matrix: Any, vector: Vector, weight: float) -> Any:
    """matrix + weight vector vector^T."""
    if isinstance(matrix, SpannedMatrix):
        return matrix.plus_outer(vector, weight)
    values, basis = np.linalg.eigh(matrix.dense() + weight * np.outer(vector, vector))
    return SpectralMatrix(values, basis)
