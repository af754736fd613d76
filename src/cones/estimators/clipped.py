r"""The gradient of a clipped surrogate: several epochs of steps from one population (TRES).

After the first epoch the belief has moved and the candidates have not. Coordinate j of candidate i counts with the
ratio r of the densities of both beliefs, and no longer if that has gained `clip`:

    r_ij = p_j(x_ij) / q_j(x_ij),      p the present belief, q the one that the candidates were drawn from
    surrogate   1/N sum_ij max( r_ij u_i, clip(r_ij, 1 - c, 1 + c) u_i )                 a loss, low is good
    a_j = 1/N sum_i w_ij z_ij          b_j = 1/N sum_i w_ij (z_ij^2 - 1) / 2             z in the frame of p
    w_ij = r_ij u_i,   0 if u_i < 0 and r_ij > 1 + c,  or u_i > 0 and r_ij < 1 - c

In the first epoch r = 1 and this is the score-function estimate. The ratios of whole candidates would be a product of n
factors and useless in many dimensions; hence one per coordinate, which needs a diagonal belief.

Reference: Liu et al., Trust Region Evolution Strategies, AAAI 2019.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np

from cones.beliefs import DiagonalGaussian, DiagonalMatrix, FrameGradient
from cones.checks import check_integer, check_positive
from cones.component import setting
from cones.estimators.estimator import Estimate, Estimator, Sample
from cones.estimators.score_function import noise_level, score_function
from cones.types import Matrix

__all__ = ["Clipped"]


@dataclass(frozen=True)
class Clipped(Estimator):
    """The gradient of a surrogate by importance weights, clipped: several steps from one population."""

    name = "clipped"
    beliefs = (DiagonalGaussian,)

    epochs: int = setting(10, "Number of steps that are taken with each population.")
    clip: float = setting(0.2, "Change of a density ratio beyond which a coordinate of a candidate no longer counts.")

    def __post_init__(self) -> None:
        check_integer("epochs", self.epochs, 1)
        check_positive("clip", self.clip)

    def estimate(self, state: None, sample: Sample) -> tuple[Estimate, None]:
        if sample.moved is None:
            return score_function(sample), None
        old, new = cast(DiagonalGaussian, sample.belief), cast(DiagonalGaussian, sample.moved)
        return self._surrogate(sample, old, new), None

    def _surrogate(self, sample: Sample, old: DiagonalGaussian, new: DiagonalGaussian) -> Estimate:
        mirrored, size = sample.plan.mirrored, sample.utilities.size
        utilities = sample.utilities.astype(new.mean.dtype) / size
        signs = [(1.0, utilities[::2]), (-1.0, utilities[1::2])] if mirrored else [(1.0, utilities)]
        mean, moment = np.zeros_like(new.mean), np.zeros_like(new.mean)
        scale, shift = old.deviation / new.deviation, (old.mean - new.mean) / new.deviation
        gained = np.log(scale)

        def use(columns: slice, blocks: Iterator[tuple[slice, Matrix, Matrix]]) -> None:
            for which, normals, _ in blocks:
                for sign, values in signs:
                    drawn = sign * normals
                    z, u = scale[columns] * drawn + shift[columns], values[which, None]
                    ratio = np.exp(0.5 * (drawn * drawn - z * z) + gained[columns])
                    left = np.where(u < 0.0, ratio > 1.0 + self.clip, ratio < 1.0 - self.clip)
                    weights = np.where(left, 0.0, ratio * u)
                    mean[columns] += np.einsum("ij,ij->j", weights, z)
                    moment[columns] += 0.5 * np.einsum("ij,ij->j", weights, z * z - 1.0)

        sample.noise.over_columns(use)
        return Estimate(FrameGradient(mean, DiagonalMatrix(moment)), noise_level(new, sample.utilities), size)
