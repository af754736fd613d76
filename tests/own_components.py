"""Components of a user's own, as they would stand in a user's file. Nothing in cones knows of them.

`tests/own/` composes them, stores them in checkpoints and names them on the command line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtri

import cones
from cones.beliefs import FrameGradient, Gaussian
from cones.divergences import Ball, Divergence, Lagrangian, Point
from cones.estimators import NoiseLevel
from cones.estimators.score_function import score_function
from cones.radius import EstimateStats, Radius, RadiusControl
from cones.restarts import NextDescent, Restarts
from cones.solvers import Dual, Solver

# --- an estimator that remembers -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class AverageState:
    mean: np.ndarray
    count: int


@dataclass(frozen=True)
class Averaged(cones.Estimator):
    """The score function, its gradient in the mean averaged over iterations."""

    decay: float = cones.setting(0.5, "Share of the average that is kept.")

    def estimate(self, state, sample):
        estimate = score_function(sample)
        new = estimate.gradient.mean
        state = state or AverageState(np.zeros_like(new), 0)
        mean = self.decay * state.mean + (1.0 - self.decay) * new
        corrected = mean / (1.0 - self.decay ** (state.count + 1))
        return estimate._replace(
            gradient=FrameGradient(corrected, estimate.gradient.covariance), diagnostics={"averaged": state.count}
        ), AverageState(mean, state.count + 1)


@dataclass(frozen=True)
class Reusing(cones.Estimator):
    """The score function with utilities that are the ranks among this and the last two populations."""

    remembers = 2

    def estimate(self, state, sample):
        past = [population.losses for population in sample.past]
        every = np.concatenate([sample.losses, *past])
        ranks = np.argsort(np.argsort(every))[: sample.losses.size] / max(every.size - 1, 1) - 0.5
        seen = {"past": len(past), "past_sum": float(sum(population.candidates.sum() for population in sample.past))}
        return score_function(sample._replace(utilities=ranks))._replace(diagnostics=seen), state


# --- a step rule ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cut(cones.StepRule):
    """The natural gradient, its parts cut to a length. It remembers how often, in a plain dictionary."""

    largest: float = cones.setting(0.3, "The largest length of a part in the frame.")

    def propose(self, state, belief, estimate, info):
        state = state or {"cuts": 0, "of": ()}
        a, matrix = estimate.gradient
        factors = [min(1.0, self.largest / max(length, 1e-300)) for length in (np.linalg.norm(a), 2.0 * matrix.norm())]
        cuts = sum(int(factor < 1.0) for factor in factors)
        step = cones.Step(
            shift=belief.from_frame(factors[0] * a),
            log_ratio=matrix.map(lambda values: 2.0 * factors[1] * values),
            columns={"cuts": state["cuts"] + cuts},
        )
        return step, {"cuts": state["cuts"] + cuts, "of": (*state["of"], cuts)[-3:]}


# --- an optimizer with a state -------------------------------------------------------------------------------------


class HeavyBallState(NamedTuple):
    velocity: np.ndarray
    label: str
    nothing: None = None


@dataclass(frozen=True)
class HeavyBall(cones.Optimizer):
    """Momentum for the mean; the covariance is taken as it is, at a rate."""

    rate: float = cones.setting(0.5, "Learning rate.")
    momentum: float = cones.setting(0.5, "Share of the velocity that is kept.")

    def start(self, step):
        return HeavyBallState(np.zeros_like(step.shift), "ball")

    def update(self, state, step):
        velocity = self.momentum * state.velocity - self.rate * step.shift
        log_ratio = step.log_ratio.map(lambda values: -self.rate * values)
        return step._replace(shift=velocity, log_ratio=log_ratio), HeavyBallState(velocity, state.label)


# --- a radius control ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CoolingState:
    count: int = 0


@dataclass(frozen=True)
class Cooling(RadiusControl):
    """A radius that falls by a factor per iteration."""

    first: float = cones.setting(2.0, "The first radius.")
    factor: float = cones.setting(0.97, "Factor per iteration.")

    def start(self, stats: EstimateStats) -> CoolingState:
        return CoolingState()

    def radius(self, state: CoolingState, stats: EstimateStats) -> tuple[Radius, CoolingState]:
        return Radius(self.first * self.factor**state.count), CoolingState(state.count + 1)


# --- shaping -------------------------------------------------------------------------------------------------------


def signs(losses: np.ndarray) -> np.ndarray:
    """-1 for losses below the median, +1 above, 0 at it; NaN is above."""
    losses = np.where(np.isnan(losses), np.inf, losses)
    return np.sign(losses - np.median(losses), where=np.isfinite(losses), out=np.ones_like(losses))


# --- a belief that is not Gaussian, with its estimator and its step --------------------------------------------------


class Bernoulli(cones.Belief):
    """Independent bits: coordinate j of a candidate is 1 with probability mean_j."""

    separable = True

    def __init__(self, mean: np.ndarray) -> None:
        margin = 0.5 / len(mean)  # a bit that is sure is never seen again
        self.mean = np.clip(np.asarray(mean, float), margin, 1.0 - margin)
        self.mean.flags.writeable = False

    @classmethod
    def start(cls, mean, deviation):
        return cls(mean)

    def draw(self, noise, out, columns=slice(None)):
        threshold = ndtri(self.mean[columns])
        out[:, 0] = noise < threshold
        if out.shape[1] == 2:
            out[:, 1] = -noise < threshold

    def log_density(self, candidates):
        return np.where(candidates > 0.5, np.log(self.mean), np.log1p(-self.mean)).sum(axis=1)

    def moved(self, step):
        return Bernoulli(expit(logit(self.mean) + step.shift))

    def kl(self, other):
        p, q = self.mean, other.mean
        return float((p * np.log(p / q) + (1.0 - p) * np.log((1.0 - p) / (1.0 - q))).sum())

    def standard_deviations(self):
        return np.sqrt(self.mean * (1.0 - self.mean))

    def state(self):
        return {"mean": self.mean}

    @classmethod
    def from_state(cls, state):
        return cls(state["mean"])


@dataclass(frozen=True)
class BernoulliGradient:
    natural: np.ndarray  # Cov(T)^-1 E[u (T - theta)], the gradient in the mean parameters


@dataclass(frozen=True)
class BernoulliScore(cones.Estimator):
    """The natural gradient of an expected utility over bits."""

    def estimate(self, state, sample):
        p, X, u = sample.belief.mean, sample.candidates(), sample.utilities
        gradient = (u @ (X - p)) / len(u) / (p * (1.0 - p))
        return cones.Estimate(BernoulliGradient(gradient), NoiseLevel(), len(u)), None


@dataclass(frozen=True)
class BernoulliBall(cones.StepRule):
    """eta' = eta + g / lambda: the steepest step in a ball of KL, for a family that is linear in its mean."""

    radius: float = cones.setting(0.5, "Radius of the ball KL <= radius^2.")

    def propose(self, state, belief, estimate, info):
        g = estimate.gradient.natural
        if not g.any():
            return cones.Step(shift=np.zeros_like(g), status=cones.StepStatus.ZERO_GRADIENT), None
        g = g / np.abs(g).max()
        low, high = 1e-6, 1e6  # of the multiplier, on whose logarithm KL falls
        for _ in range(60):
            middle = math.sqrt(low * high)
            kl = belief.moved(cones.Step(shift=-g / middle)).kl(belief)
            low, high = (middle, high) if kl > self.radius**2 else (low, middle)
        return cones.Step(shift=g / high, status=cones.StepStatus.OPTIMAL, multiplier=high), None


# --- a divergence ----------------------------------------------------------------------------------------------------


class WassersteinLagrangian(Lagrangian):
    """D = |m|^2 + sum (q - 1)^2 with q = sqrt(r), so that at lambda > max(0, max b)

    m = a / (2 lambda),   q = 1 / (1 - b / lambda),   phi = |a|^2 / (4 lambda^2) + sum (b / (lambda - b))^2
    """

    def __init__(self, gradient: FrameGradient, radius: float, derivatives: bool) -> None:
        self.gradient, self.radius, self.derivatives = gradient, radius, derivatives
        self.b = gradient.covariance.spectrum()
        self.square = float(gradient.mean @ gradient.mean)
        self.smallest = max(0.0, float(self.b.max()))

    def bracket(self) -> tuple[float, float, float]:
        low = max(math.sqrt(self.square) / (2 * self.radius) - self.smallest, self.smallest / self.radius, 1e-200)
        large = 2 * float(np.abs(self.b).max())
        high = max(large, math.sqrt(self.square / 4 + 4 * float(self.b @ self.b)) / self.radius, low)
        return math.log(low) - 1e-9, math.log(math.sqrt(low * high)), math.log(high) + 1e-9

    def at(self, u: float) -> Point:
        excess = math.exp(u)
        multiplier = self.smallest + excess
        pole = (self.smallest - self.b) + excess
        phi = self.square / (4 * multiplier**2) + float(((self.b / pole) ** 2).sum())
        if not self.derivatives:
            return Point(u, multiplier, phi, math.nan, math.nan)
        first = -self.square / (2 * multiplier**3) - 2 * float((self.b**2 / pole**3).sum())
        second = 1.5 * self.square / multiplier**4 + 6 * float((self.b**2 / pole**4).sum())
        return Point(u, multiplier, phi, first * excess, second * excess**2 + first * excess)

    def step(self, point: Point) -> cones.Step[Any]:
        pole = (self.smallest - self.b) + math.exp(point.u)
        q = point.multiplier / pole
        return cones.Step(
            shift=self.gradient.mean / (2 * point.multiplier),
            log_ratio=self.gradient.covariance.with_spectrum(2 * np.log(q)),
            divergence=point.divergence,
            multiplier=point.multiplier,
            objective=self.square / (2 * point.multiplier) + float(self.b @ (q**2 - 1)),
            gap=point.multiplier * (self.radius**2 - point.divergence),
        )


@dataclass(frozen=True)
class Wasserstein(Divergence):
    """The squared Wasserstein-2 distance, measured in the frame of the old belief."""

    derivatives: bool = cones.setting(True, "Whether the dual function gives its derivatives to the root finder.")

    def lagrangian(self, gradient: FrameGradient, radius: float) -> Lagrangian | None:
        if not gradient.mean.any() and not gradient.covariance.values.any():
            return None
        return WassersteinLagrangian(gradient, radius, self.derivatives)

    def between(self, new: Gaussian, old: Gaussian) -> float:
        m = old.to_frame(new.mean - old.mean)
        new_columns, old_columns = (
            np.column_stack([belief.from_frame(e) for e in np.eye(old.dim)]) for belief in (new, old)
        )
        # R = A A^T with A = L^-1 L', and tr R^(1/2) is the sum of the singular values of A.
        A = np.linalg.solve(old_columns, new_columns)
        singular = np.linalg.svd(A, compute_uv=False)
        return float(m @ m + ((singular - 1.0) ** 2).sum())


# --- a solver --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cautious(Solver):
    """The exact dual in a ball that is smaller than the one it was asked for."""

    share: float = cones.setting(0.5, "Share of the radius that is used.")

    def solve(self, gradient: FrameGradient, ball: Ball) -> cones.Step[Any]:
        return Dual().solve(gradient, Ball(ball.divergence, self.share * ball.radius))


# --- a restart policy ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Closer(Restarts):
    """Starts anew at x0, with a smaller spread each time."""

    factor: float = cones.setting(0.5, "Factor of the standard deviations at each restart.")

    def next(self, state, end, rng):
        factors = (*(state or ()), self.factor)
        return NextDescent(end.popsize, factor=math.prod(factors), plan=math.inf), factors


# --- losses ----------------------------------------------------------------------------------------------------------


def onemax(x: np.ndarray) -> float:
    """Minus the number of ones."""
    return -float(np.sum(x))


def bowl(x: np.ndarray) -> float:
    return float(((np.asarray(x) - 1.0) ** 2).sum())
