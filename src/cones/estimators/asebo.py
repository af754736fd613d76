r"""ASEBO: candidates from an active subspace of past gradients.

The first `warm_up` iterations draw isotropic noise. Then the columns of U are the leading principal directions of the
last `archive` gradients, as few as explain `share` of their variance. With r directions in n dimensions,

    z ~ N(0, p I + q U U^T),   p = alpha / n,   q = (1 - alpha) / r,   scaled to the length of isotropic noise
    alpha <- |g - U U^T g| / |U U^T g|, at most 1

alpha = 1 is isotropic noise. g is the score-function estimate, biased towards U as in Guided ES. U is the subspace of
the next candidates, and its archive includes g. With the previous U, an estimate from few candidates would be mostly
noise, alpha would stay 1, and nothing would be gained.

Reference: Choromanski et al., From Complexity to Simplicity: Adaptive ES-Active Subspaces for Blackbox Optimization,
NeurIPS 2019.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cones.checks import check_fraction, check_integer
from cones.component import Storable, setting
from cones.estimators.estimator import Estimate, Estimator, Sample
from cones.estimators.score_function import score_function
from cones.sampling import Plan
from cones.types import Matrix, Vector

__all__ = ["ActiveSubspace", "Asebo", "AseboState"]


@dataclass(frozen=True)
class ActiveSubspace(Storable):
    """Stretches isotropic noise along the columns of `basis` and keeps the length of each row."""

    basis: Matrix  # U, shape (n, r), orthonormal columns
    alpha: float

    def __call__(self, noise: Matrix) -> Matrix:
        n, r = self.basis.shape
        p, q = self.alpha / n, (1.0 - self.alpha) / r
        drawn = math.sqrt(p) * noise + (math.sqrt(p + q) - math.sqrt(p)) * (noise @ self.basis) @ self.basis.T
        lengths = np.linalg.norm(noise, axis=1) / np.linalg.norm(drawn, axis=1)
        return np.asarray(drawn * lengths[:, None], noise.dtype)


@dataclass(frozen=True)
class AseboState(Storable):
    """Past gradients, shape (k, n), the latest last; the current subspace, if any; the number of iterations."""

    gradients: Matrix
    subspace: ActiveSubspace | None = None
    count: int = 0


@dataclass(frozen=True)
class Asebo(Estimator):
    """The score-function estimate, with candidates from the active subspace of past gradients."""

    name = "asebo"

    warm_up: int = setting(10, "Iterations of isotropic noise before the first subspace.")
    archive: int = setting(50, "Number of past gradients that determine the subspace.")
    share: float = setting(0.95, "Share of the gradients' variance that the subspace explains.")

    def __post_init__(self) -> None:
        check_integer("warm_up", self.warm_up, 1)
        check_integer("archive", self.archive, 1)
        check_fraction("share", self.share)

    def plan(self, state: AseboState | None, plan: Plan) -> Plan:
        if state is None or state.subspace is None:
            return plan
        return Plan(plan.popsize, plan.mirrored, state.subspace)

    def estimate(self, state: AseboState | None, sample: Sample) -> tuple[Estimate, AseboState]:
        estimate = score_function(sample)
        gradient: Vector = estimate.gradient.mean
        past = np.empty((0, gradient.size), gradient.dtype) if state is None else state.gradients
        gradients = np.vstack([past, gradient])
        count = len(gradients) if state is None else max(state.count + 1, len(gradients))
        gradients = gradients[-self.archive :]
        subspace = None
        if count >= self.warm_up:
            basis = _leading(gradients, self.share)
            subspace = ActiveSubspace(basis, _alpha(gradient, basis))
        diagnostics = {
            "subspace_rank": 0.0 if subspace is None else float(subspace.basis.shape[1]),
            "subspace_alpha": 1.0 if subspace is None else subspace.alpha,
        }
        return estimate._replace(diagnostics=diagnostics), AseboState(gradients, subspace, count)


def _alpha(gradient: Vector, basis: Matrix) -> float:
    inside = basis @ (gradient @ basis)
    outside, within = np.linalg.norm(gradient - inside), np.linalg.norm(inside)
    return min(1.0, float(outside / within)) if within > 0.0 else 1.0


def _leading(gradients: Matrix, share: float) -> Matrix:
    """The fewest leading principal directions that explain a share of the gradients' variance; at least one."""
    _, lengths, directions = np.linalg.svd(gradients, full_matrices=False)
    explained = np.cumsum(lengths**2)
    count = 1 + int(np.searchsorted(explained, share * explained[-1]))
    return np.ascontiguousarray(directions[: min(count, len(directions))].T)
