r"""RBO: the gradient by regression, from this and earlier populations.

In the frame of the belief, the loss near the mean is c + a^T z. A pair measures sqrt(2) a^T z_i with the result
(f_i+ - f_i-) / sqrt(2), a single or an earlier candidate c + a^T z_j with f_j, each with the noise of one loss. With
the rows of A for these, centred for single candidates, and results y,

    ridge      a = n/d A^T (A A^T + l I)^-1 y,   l = ridge n,   d = tr A^T (A A^T + l I)^-1 A
    absolute   a = argmin_a min_c |A a + c - y|_1        by linear programming: max y^T w, A^T w = 0, |w_i| <= 1

The factor n/d makes the ridge unbiased. For far fewer candidates than dimensions it is the score-function estimate.
Least absolute deviations find a linear loss exactly if up to a fifth or so of many more than n results are arbitrarily
wrong; with at most n results, the ridge takes over. Losses are centred by their median. The unit of a is that of the
utilities, by the ratio of their median absolute deviations, which corrupted losses hardly change. The covariance's
gradient is the score function's. The noise level is the length of the same fit to results in random order: in closed
form for the ridge.

Reference: Choromanski et al., Provably Robust Blackbox Optimization for Reinforcement Learning, CoRL 2019.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from cones.beliefs import Gaussian
from cones.checks import check_integer, check_one_of, check_positive
from cones.component import setting
from cones.errors import InputError
from cones.estimators.estimator import Estimate, Estimator, PastPopulation, Sample
from cones.estimators.score_function import gaussian, score_function
from cones.estimators.shaping import raw
from cones.sampling import NoiseBlock, Plan
from cones.types import Matrix, Vector

__all__ = ["Rbo", "least_absolute", "ridge"]

# Results beyond this many median absolute deviations keep their sign only; linear programs dislike large numbers.
LARGEST_RESULT = 1e4


@dataclass(frozen=True)
class Rbo(Estimator):
    """Regression of losses on candidates, earlier ones included: ridge, or robust against corrupted losses.

    Its state is the earlier populations, the latest first.
    """

    name = "rbo"
    beliefs = (Gaussian,)

    fit: str = setting("ridge", 'Fit: "ridge", or "absolute" (least absolute deviations) for corrupted losses.')
    ridge: float = setting(0.1, "Weight of the ridge, relative to n.")
    reuse: int = setting(0, "Number of earlier populations that are used again.")
    within: float = setting(1.5, "Distance up to which earlier candidates are used, in units of that of new ones.")

    def __post_init__(self) -> None:
        check_one_of("fit", self.fit, ("ridge", "absolute"))
        check_positive("ridge", self.ridge)
        check_integer("reuse", self.reuse, 0)
        check_positive("within", self.within)

    def check(self, dim: int, plan: Plan) -> None:
        results = plan.rows + self.reuse * plan.popsize
        if self.fit == "absolute" and results <= dim:
            what = "a pair counts once" if plan.mirrored else "one per candidate"
            raise InputError(
                f"popsize: expected more than {dim} results for estimator 'rbo,fit=absolute' in {dim} dimensions "
                f"({what}), got {results} from popsize {plan.popsize} and reuse {self.reuse}"
            )

    def estimate(
        self, state: tuple[PastPopulation, ...] | None, sample: Sample
    ) -> tuple[Estimate, tuple[PastPopulation, ...]]:
        belief, past = gaussian(sample.belief), state or ()
        rows = sample.noise.matrix()
        plain = score_function(sample._replace(noise=NoiseBlock(sample.population, rows)))
        losses = raw(sample.losses)
        centre, unit, size = float(np.median(losses)), _deviation(losses), _deviation(sample.utilities)
        pairs = len(rows) if sample.plan.mirrored else 0
        if pairs:
            points, values = [math.sqrt(2.0) * rows], [(losses[::2] - losses[1::2]) / math.sqrt(2.0)]
        else:
            points, values = [rows], [losses - centre]
        for population in past:
            z = belief.rows_to_frame(population.candidates)
            near = np.einsum("ij,ij->i", z, z) <= self.within**2 * belief.dim
            points.append(z[near])
            values.append(raw(sample.today(population))[near] - centre)
        A, y = np.concatenate(points).astype(np.float64), np.concatenate(values)
        y = np.clip(y / unit, -1e100, 1e100) if unit else np.zeros(len(y))
        robust = self.fit == "absolute" and len(y) > belief.dim + 1
        fitted = least_absolute(A, y, pairs, sample.population.iteration) if robust else None
        mean, noise = fitted or ridge(A, y, pairs, self.ridge * belief.dim)
        diagnostics = {"results": float(len(y)), "robust": float(fitted is not None)}
        estimate = plain._replace(
            gradient=plain.gradient._replace(mean=np.asarray(size * mean, rows.dtype)),
            noise=plain.noise._replace(mean=size * noise),
            diagnostics=diagnostics,
        )
        return estimate, sample._replace(past=past).followed(self.reuse)


def ridge(A: Matrix, y: Vector, pairs: int, weight: float) -> tuple[Vector, float]:
    """The fit, and its root mean square length for results in random order. The first `pairs` rows have no constant."""
    A, y, n, free = A.copy(), y.copy(), A.shape[1], len(y)
    if free > pairs:
        A[pairs:] -= A[pairs:].mean(axis=0)
        y[pairs:] -= y[pairs:].mean()
        free -= 1
    few = len(A) <= n
    squares, basis = np.linalg.eigh(A @ A.T if few else A.T @ A)
    squares = np.maximum(squares, 0.0)
    projected = basis.T @ (y if few else A.T @ y)
    solved = basis @ (projected / (squares + weight))
    factor = n / float((squares / (squares + weight)).sum())
    spread = float((squares / (squares + weight) ** 2).sum()) * float(y @ y) / max(free, 1)
    return factor * (A.T @ solved if few else solved), factor * math.sqrt(spread)


def least_absolute(A: Matrix, y: Vector, pairs: int, seed: int) -> tuple[Vector, float] | None:
    """The fit, and its length for results in random order; None if the linear program fails."""
    singles = (np.arange(len(y)) >= pairs).astype(np.float64)
    columns = A if pairs == len(y) else np.column_stack([A, singles])
    y = np.clip(y, -LARGEST_RESULT, LARGEST_RESULT)
    rng = np.random.default_rng(seed)
    shuffled = np.concatenate([rng.choice([-1.0, 1.0], pairs) * rng.permutation(y[:pairs]), rng.permutation(y[pairs:])])
    fits = []
    for results in (y, shuffled):
        solved = linprog(-results, A_eq=columns.T, b_eq=np.zeros(columns.shape[1]), bounds=(-1.0, 1.0), method="highs")
        if solved.status != 0:
            return None
        fits.append(-np.asarray(solved.eqlin.marginals)[: A.shape[1]])
    return fits[0], float(np.linalg.norm(fits[1]))


def _deviation(values: Vector) -> float:
    """Median absolute deviation from the median; if that is 0, the mean one."""
    distances = np.abs(values - np.median(values))
    return float(np.median(distances)) or float(distances.mean())
