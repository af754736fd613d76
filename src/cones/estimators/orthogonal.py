r"""The score-function estimate with orthogonal rows of noise.

The rows z_1, ..., z_b of a block of at most n keep their lengths. Their directions become orthonormal, by Gram-Schmidt:

    (z_1 ... z_b) = Q T,  T upper triangular with a positive diagonal          z_i <- |z_i| q_i

Lengths and directions of a normal vector are independent, so each row is standard normal still, and the estimate
unbiased. What two rows have in common is measured only once. For a linear loss with gradient g and R rows in one block,

    E |a - g|^2 = (n + 2 - R) / R |g|^2,      (n + 1) / R |g|^2 with independent rows

The gain is R / n: orthogonal rows are worth their O(n R^2) operations from R = n / 4 on. Losses that are independent of
the candidates give the same noise level as with independent rows, because their signs are independent.

Reference: Choromanski et al., Structured Evolution with Compact Architectures for Scalable Policy Optimization, ICML
2018.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cones.checks import check_integer
from cones.component import Storable, setting
from cones.errors import InputError
from cones.estimators.estimator import Estimate, Estimator, Sample
from cones.estimators.score_function import score_function
from cones.sampling import Plan
from cones.types import Matrix

__all__ = ["Orthogonal", "OrthogonalRows"]


@dataclass(frozen=True)
class OrthogonalRows(Storable):
    """Makes the rows of each block orthogonal and keeps their lengths.

    `block` is the largest number of orthogonal rows, at most n. The first rows of each block point along the rows of
    `first`, shape (k, n), orthonormal, if it is given, or against them: the sign is random, so that rows have mean 0.
    """

    block: int | None = None
    first: Matrix | None = None

    def __call__(self, noise: Matrix) -> Matrix:
        rows, n = noise.shape
        size = min(n, self.block or n, rows)
        whole = rows - rows % size
        drawn = np.empty(noise.shape, noise.dtype)
        drawn[:whole] = self._orthogonal(noise[:whole].reshape(-1, size, n)).reshape(-1, n)
        if whole < rows:
            drawn[whole:] = self._orthogonal(noise[None, whole:])[0]
        return drawn

    def _orthogonal(self, blocks: Matrix) -> Matrix:
        """For blocks of equal size, shape (blocks, rows, n)."""
        directions = blocks
        if self.first is not None:
            count = min(len(self.first), blocks.shape[1])
            directions = blocks.copy()
            signs = np.copysign(1.0, np.einsum("bkn,kn->bk", blocks[:, :count], self.first[:count]))
            directions[:, :count] = signs[:, :, None] * self.first[:count]
        basis, triangle = np.linalg.qr(directions.swapaxes(1, 2))
        signs = np.where(np.diagonal(triangle, axis1=1, axis2=2) < 0.0, -1.0, 1.0)
        lengths = signs * np.linalg.norm(blocks, axis=2)
        return np.asarray(lengths[:, :, None] * basis.swapaxes(1, 2))


@dataclass(frozen=True)
class Orthogonal(Estimator):
    """The score-function estimate with orthogonal rows of noise: less variance if popsize is not far below n."""

    name = "orthogonal"

    block: int | None = setting(None, "Largest number of rows that are orthogonal to each other; by default n.")

    def __post_init__(self) -> None:
        if self.block is not None:
            check_integer("block", self.block, 1)

    def check(self, dim: int, plan: Plan) -> None:
        if self.block is not None and self.block > dim:
            raise InputError(f"block: expected at most {dim} orthogonal rows in {dim} dimensions, got {self.block}")

    def plan(self, state: None, plan: Plan) -> Plan:
        return orthogonal(plan, OrthogonalRows(self.block))

    def estimate(self, state: None, sample: Sample) -> tuple[Estimate, None]:
        return score_function(sample), None


def orthogonal(plan: Plan, rows: OrthogonalRows) -> Plan:
    """The plan with rows that are orthogonal in blocks."""
    return Plan(plan.popsize, plan.mirrored, rows, rows.block or plan.rows)
