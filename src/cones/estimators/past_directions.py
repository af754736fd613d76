r"""Rows of noise along the last estimates of the gradient, and orthogonal to them.

The rows q_1, ..., q_R are orthonormal: the first ones span the last `directions` estimates, the others are random. Each
has the length |z_i| of standard normal noise, as in `orthogonal`. With the derivatives of pairs of utilities,

    d_i = ( u(z_i) - u(-z_i) ) / (2 |z_i|)             a = n / R sum_i d_i q_i

For a linear loss with gradient g, a is n / R times the projection of g onto the span of the rows. So the cosine of the
angle between a and g is never below that between a past estimate and g, and grows with every new row. The estimate is
biased towards the past. The factor n / R gives it the length of the score-function estimate; the paper has 1. The
covariance's gradient is that of the score function. With u^2 the mean square of the utilities, and utilities that are
independent of the noise,

    E |a|^2 = u^2 / (2 R) n / R sum_i n / |z_i|^2       (u^2 / R in place of u^2 / 2 R for independent candidates)

Past estimates are kept in the frame of their belief, which changes little in a step.

Reference: Meier et al., Improving Gradient Estimation in Evolutionary Strategies With Past Descent Directions, 2019.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cones.beliefs import Gaussian
from cones.checks import check_integer
from cones.component import setting
from cones.errors import InputError
from cones.estimators.estimator import Estimate, Estimator, Sample
from cones.estimators.orthogonal import OrthogonalRows, orthogonal
from cones.estimators.score_function import gaussian, score_function
from cones.sampling import NoiseBlock, Plan
from cones.types import Matrix

__all__ = ["PastDirections"]


@dataclass(frozen=True)
class PastDirections(Estimator):
    """Measures the last estimates again, and new directions orthogonal to them: for popsize far below n.

    Its state is the last estimates, shape (k, n), the latest first.
    """

    name = "past_directions"
    beliefs = (Gaussian,)

    directions: int = setting(1, "Number of past estimates that are measured again.")

    def __post_init__(self) -> None:
        check_integer("directions", self.directions, 1)

    def check(self, dim: int, plan: Plan) -> None:
        most = min(dim, plan.rows) - 1
        if self.directions > most:
            rows = "pairs" if plan.mirrored else "candidates"
            raise InputError(
                f"directions: expected at most {most}, fewer than the {plan.rows} {rows} of popsize {plan.popsize} and "
                f"than {dim} dimensions, got {self.directions}"
            )

    def plan(self, state: Matrix | None, plan: Plan) -> Plan:
        first = None if state is None else _orthonormal(state)
        return orthogonal(plan, OrthogonalRows(first=first))

    def estimate(self, state: Matrix | None, sample: Sample) -> tuple[Estimate, Matrix]:
        plan, utilities = sample.plan, sample.utilities
        rows = sample.noise.matrix()
        plain = score_function(sample._replace(noise=NoiseBlock(sample.population, rows)))
        n, size = gaussian(sample.belief).dim, utilities.size
        factors = n / np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        odd, _ = plan.fold(utilities / size)
        mean = np.asarray(odd * factors, rows.dtype) @ rows
        unit = math.sqrt(float(utilities @ utilities) * plan.per_row * n * float(factors.sum()) / size) / size
        estimate = plain._replace(gradient=plain.gradient._replace(mean=mean), noise=plain.noise._replace(mean=unit))
        past = mean[None] if state is None else np.vstack([mean[None], state])
        return estimate, past[: self.directions]


def _orthonormal(estimates: Matrix) -> Matrix | None:
    """Orthonormal rows that span the estimates, the latest first; None if all are zero."""
    rows: list[Matrix] = []
    for estimate in estimates:
        largest = float(np.abs(estimate).max())
        if not 0.0 < largest < math.inf:
            continue
        rest = estimate / largest
        length = float(np.linalg.norm(rest))
        for _ in range(2):  # twice is enough
            for row in rows:
                rest = rest - (rest @ row) * row
        if np.linalg.norm(rest) > 1e-6 * length:
            rows.append(rest / np.linalg.norm(rest))
    return np.stack(rows) if rows else None
