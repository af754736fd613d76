r"""The score function of an exponential family, with the best candidate so far as one more sample.

The weights are those of CMA-ES over the N candidates and the best one before them. Where the belief is nearly certain,
few candidates differ from its mode, and most of those that do are worse. The best candidate so far keeps pointing to
what is known to be good, as the parent does in an elitist evolutionary algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from cones.beliefs import ExponentialFamily
from cones.component import Storable
from cones.estimators.estimator import Estimate, Estimator, Sample
from cones.estimators.score_function import family_score
from cones.estimators.shaping import recombination_weights
from cones.types import Vector

__all__ = ["Elite", "EliteState"]


@dataclass(frozen=True)
class EliteState(Storable):
    """The best candidate so far and its loss; with constraints, a row of both. Of two equal ones, the later."""

    candidate: Vector
    loss: float
    values: Vector | None = None

    def today(self, sample: Sample) -> EliteState:
        """The same with the merit that it has now: merits change from one iteration to the next."""
        if self.values is None:
            return self
        return replace(self, loss=float(sample.losses_of(self.values[None])[0]))


@dataclass(frozen=True)
class Elite(Estimator):
    """For families other than Gaussians: the score function of the population and the best candidate so far."""

    name = "elite"
    beliefs = (ExponentialFamily,)

    def estimate(self, state: EliteState | None, sample: Sample) -> tuple[Estimate, EliteState | None]:
        belief = cast(ExponentialFamily, sample.belief)
        candidates, losses = np.asarray(sample.candidates()), sample.losses
        best = int(np.where(np.isnan(losses), np.inf, losses).argmin())
        values = None if sample.told is None else np.array(sample.told.values[best])
        latest = EliteState(np.array(candidates[best]), float(losses[best]), values)
        if state is not None:
            state = state.today(sample)
            candidates, losses = np.vstack([candidates, state.candidate]), np.append(losses, state.loss)
            if not latest.loss <= state.loss:
                latest = state
        elif np.isnan(latest.loss):
            return family_score(belief, candidates, np.zeros(losses.size)), None
        return family_score(belief, candidates, recombination_weights(losses)), latest
