r"""A quadratic model of the loss from this and earlier populations.

The KL ball keeps the next belief close to the last one, so evaluations of earlier iterations still describe the loss
near it. In the frame of the belief, z = L^-1 (x - mu), the model is

    f(x) = c + g^T z + 1/2 z^T H z,       p = (n + 1)(n + 2) / 2 numbers

fitted to the last `keep` p evaluations by ridge regression of what the previous model leaves over: the change of the
model, and not the model, is kept small. With the kernel of quadratic polynomials and weights w,

    G_ij = 1 + z_i^T z_j + 1/2 (z_i^T z_j)^2,     alpha = (G + ridge n diag(1/w))^-1 (f - previous model)
    c += sum_i alpha_i,     g += sum_i alpha_i z_i,     H += sum_i alpha_i z_i z_i^T
    1/w_i = ( 1 + (|z_i|^2 / 4n)^2 ) ( 1 + (u_i / 3)^2 )

where u_i is the excess over the best kept loss in units of the population's own: points far away, or far worse than the
present candidates, count less. The model is affine invariant and holds in any later frame.

How far it can be trusted is measured before it learns: tau is Kendall's rank correlation between its predictions and
the losses of a new population, and `agreement` the running average of tau. `cones.steps.EvolutionPath` follows the
model only where the agreement is high, so that noise and local minima, which no quadratic predicts, do not mislead it.

The gradient of the estimate is that of `recombination`. References: MORE (Abdolmaleki et al., 2015) fits quadratics in
a KL-constrained search; lq-CMA-ES (Hansen, 2019) measures a quadratic's rank correlation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dposv

from cones.beliefs import FullGaussian, Gaussian
from cones.checks import check_positive
from cones.component import Storable, setting
from cones.errors import InputError
from cones.estimators.estimator import Estimate, Estimator, Sample
from cones.estimators.recombination import recombination
from cones.types import Matrix, Vector

__all__ = ["Quadratic", "QuadraticModel", "QuadraticState"]

# Beyond this dimension the matrix G is too large to solve in every iteration.
LARGEST_DIMENSION = 64
# A model is fitted from this share of p evaluations on, within this squared distance per dimension.
LEAST_SHARE, NEAR = 0.6, 16.0
# A model is fitted anew after this share of p evaluations; in few dimensions, in every iteration.
REFIT_SHARE = 0.05
AGREEMENT_RATE = 0.3
# Agreement from which on the minimum of the model is reported.
RELIABLE = 0.8
# At least four populations are kept, if they are not more evaluations than this.
LARGEST_EXTRA = 400
# tau is computed from at most this many candidates.
LARGEST_SAMPLE = 100


@dataclass(frozen=True)
class QuadraticModel(Storable):
    """c + g^T z + 1/2 z^T H z in the frame of a belief.

    Attributes:
        belief: the belief whose frame it is.
        constant, gradient, curvature: c, g and H.
        agreement: the running average of tau; 0 before the first prediction.
        tau: rank correlation between the model's predictions and the losses of the latest population.
        predictions: number of populations that it has predicted.
    """

    belief: FullGaussian
    constant: float
    gradient: Vector
    curvature: Matrix
    agreement: float = 0.0
    tau: float = 0.0
    predictions: int = 0

    def values(self, points: Matrix) -> Vector:
        """The model at points in its frame, one per row."""
        curved = 0.5 * np.einsum("ij,ij->i", points @ self.curvature, points)
        return np.asarray(self.constant + points @ self.gradient + curved)

    def seen_from(self, belief: FullGaussian) -> QuadraticModel:
        """The same model in the frame of another belief."""
        T, t = self.belief.frame_of(belief)
        slope = self.gradient + self.curvature @ t
        constant = self.constant + 0.5 * float(t @ (self.gradient + slope))
        return QuadraticModel(
            belief, constant, T.T @ slope, T.T @ self.curvature @ T, self.agreement, self.tau, self.predictions
        )

    def judged(self, candidates: Matrix, losses: Vector) -> QuadraticModel:
        """The model with the evidence of a population that it has not learnt from."""
        predicted = self.values(self.belief.rows_to_frame(candidates[:LARGEST_SAMPLE]))
        tau = rank_correlation(predicted, losses[:LARGEST_SAMPLE])
        rate = AGREEMENT_RATE if self.predictions else 1.0
        agreement = self.agreement + rate * (tau - self.agreement)
        return QuadraticModel(
            self.belief, self.constant, self.gradient, self.curvature, agreement, tau, self.predictions + 1
        )

    def minimum(self) -> float:
        """The lowest value of the model; -inf if it has none."""
        try:
            np.linalg.cholesky(self.curvature)
            return self.constant - 0.5 * float(self.gradient @ np.linalg.solve(self.curvature, self.gradient))
        except np.linalg.LinAlgError:
            return -math.inf


@dataclass(frozen=True)
class QuadraticState(Storable):
    """The latest evaluations, oldest first, the model, and the number of evaluations since it was fitted.

    With constraints, `losses` has a row of loss and constraints per candidate.
    """

    candidates: Matrix
    losses: Vector | Matrix
    model: QuadraticModel | None = None
    new: int = 0


@dataclass(frozen=True)
class Quadratic(Estimator):
    """The estimate of `recombination`, and a quadratic model that reuses evaluations."""

    name = "quadratic"
    beliefs = (Gaussian,)

    keep: float = setting(
        1.5, "Evaluations that the model is fitted to, as a multiple of its (n + 1)(n + 2) / 2 numbers."
    )
    ridge: float = setting(1e-3, "Weight of the ridge, relative to n.")

    def __post_init__(self) -> None:
        check_positive("keep", self.keep)
        check_positive("ridge", self.ridge)

    def estimate(self, state: QuadraticState | None, sample: Sample) -> tuple[Estimate, QuadraticState]:
        estimate, belief = recombination(sample), sample.belief
        if state is None:
            state = QuadraticState(np.empty((0, belief.dim)), np.empty((0, *sample.values.shape[1:])))
        if not isinstance(belief, FullGaussian):  # only a full covariance can follow the model
            return estimate, state
        if belief.dim > LARGEST_DIMENSION:
            raise InputError(
                f"estimator: expected at most {LARGEST_DIMENSION} dimensions for 'quadratic', got {belief.dim}; "
                "use 'recombination'"
            )
        state = self._learnt(state, belief, sample)
        model = state.model
        if model is None:
            return estimate._replace(diagnostics={"agreement": 0.0, "reused": 0.0}), state
        diagnostics = {"agreement": model.agreement, "reused": float(len(state.losses))}
        if not np.isfinite(sample.losses).all():  # a model of the finite losses does not see where the others are
            return estimate._replace(diagnostics=diagnostics), state
        if model.agreement > RELIABLE and math.isfinite(lowest := model.minimum()):
            diagnostics["model_minimum"] = lowest
        return estimate._replace(diagnostics=diagnostics, model=model), state

    def _learnt(self, state: QuadraticState, belief: FullGaussian, sample: Sample) -> QuadraticState:
        """The state after a population: the model is judged by it first, and then learns from it."""
        size = (belief.dim + 1) * (belief.dim + 2) // 2
        kept = max(int(self.keep * size), min(4 * len(sample.losses), LARGEST_EXTRA))
        finite = np.isfinite(sample.losses)
        candidates, losses = np.asarray(sample.candidates())[finite], sample.losses[finite]
        model = state.model
        if model is not None:
            model = model.judged(candidates, losses) if losses.size > 1 else model
            model = model.seen_from(belief)
        all_candidates = np.concatenate([state.candidates, candidates])[-kept:]
        values = np.concatenate([state.losses, sample.values[finite]])[-kept:]
        all_losses = sample.losses_of(values)
        new = state.new + losses.size
        if losses.size and (model is None or new >= REFIT_SHARE * size):
            points = belief.rows_to_frame(all_candidates)
            distances = np.einsum("ij,ij->i", points, points)
            near = distances < NEAR * belief.dim
            if int(near.sum()) >= LEAST_SHARE * size:
                model = self._fitted(model, belief, points[near], distances[near], all_losses[near], losses)
                new = 0
            else:  # the belief has left the region that the model describes
                model = None
        return QuadraticState(all_candidates, values, model, new)

    def _fitted(
        self, old: QuadraticModel | None, belief: FullGaussian, z: Matrix, distances: Vector, f: Vector, latest: Vector
    ) -> QuadraticModel | None:
        n, lowest = belief.dim, float(f.min())
        ordered = np.sort(latest)
        unit = 0.5 * float(ordered[(latest.size - 1) // 2] + ordered[latest.size // 2]) - lowest  # of the median
        if not 0.0 < unit < math.inf:  # all tied
            return old
        excess = (f - lowest) / unit
        inverse_weights = (1.0 + (distances / (4.0 * n)) ** 2) * (1.0 + np.square(np.minimum(excess, 1e100) / 3.0))
        if old is None:
            mean = float(np.average(f, weights=1.0 / inverse_weights))
            old = QuadraticModel(belief, mean, np.zeros(n), np.zeros((n, n)))
        products = z @ z.T
        kernel = 0.5 * products
        kernel += 1.0
        kernel *= products
        kernel += 1.0
        kernel.flat[:: len(kernel) + 1] += self.ridge * n * inverse_weights
        _, alpha, failed = dposv(kernel.T, (f - old.values(z)) / unit, lower=True, overwrite_a=True)
        if failed:
            return None
        alpha *= unit
        curvature = old.curvature + (z.T * alpha) @ z
        if not (np.isfinite(curvature).all() and np.isfinite(alpha).all()):
            return None
        return QuadraticModel(
            belief,
            old.constant + float(alpha.sum()),
            old.gradient + alpha @ z,
            0.5 * (curvature + curvature.T),
            old.agreement,
            old.tau,
            old.predictions,
        )


def rank_correlation(one: Vector, other: Vector) -> float:
    """Kendall's tau; pairs that are tied in either count as neither agreeing nor disagreeing."""
    if one.size < 2:
        return 0.0
    signs = np.sign(one[:, None] - one) * np.sign(other[:, None] - other)
    return float(signs.sum()) / (one.size * (one.size - 1))
