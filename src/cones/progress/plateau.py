"""Plateaus of noisy losses: where the last third of a descent has hardly made progress."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cones.component import setting
from cones.progress.history import History
from cones.progress.state import State
from cones.progress.stopping import Criterion
from cones.types import Vector

__all__ = ["Plateau"]


@dataclass(frozen=True)
class Plateau(Criterion):
    """Met if the mean loss of the last third of a descent is hardly below that of the third before.

    With f_0 the mean loss of the first ten iterations, f_1 that of the middle third, f_2 that of the last one, and e
    the standard error of f_1 - f_2, from the differences of successive losses,

        f_1 - f_2 + e <= share (f_0 - f_2)

    The windows grow with the descent, so that noise averages out, and slow progress counts. They are thirds of its
    cost, if the history has a column `cost` of what was spent so far, or of its iterations. A descent has at least
    `limit` iterations.

    A descent from the mean of another one is judged by the progress of both, too, once it has cost twice as much as the
    other. Its own progress may be so small that a tenth of it is no measure.
    """

    share: float = setting(0.1, "Least share of the descent's progress that the last third must have made.")
    name, status = "plateau", 13
    text = "The last third of the descent has hardly lowered the mean loss (plateau = {limit:g} iterations at least)."

    def met(self, state: State, history: History) -> bool:
        age = min(state.iteration - state.began, len(history))
        if age < max(self.limit, 3):
            return False
        losses, spent = history["mean_loss"], _spent(history)
        before = spent[-age - 1]
        if self._is_flat(losses[-age:], spent[-age:] - before):
            return True
        if not state.descent.at_mean:
            return False
        both = int(np.sum(history["restart"] >= state.restarts - 1))
        start = spent[-both - 1]
        return spent[-1] - before >= 2.0 * (before - start) and self._is_flat(losses[-both:], spent[-both:] - start)

    def _is_flat(self, losses: Vector, spent: Vector) -> bool:
        """True if losses, whose costs add up to `spent`, have hardly fallen in the last third of their cost."""
        is_last = spent > 2.0 / 3.0 * spent[-1]
        is_middle = (spent > spent[-1] / 3.0) & ~is_last
        (first, _), (middle, e_1), (last, e_2) = map(_mean, (losses[:10], losses[is_middle], losses[is_last]))
        return not middle - last + math.hypot(e_1, e_2) > self.share * max(first - last, 0.0)


def _spent(history: History) -> Vector:
    """What the run has cost before its first iteration and after each, or how many they are."""
    if "cost" in history:
        costs = history["cost"]
        if np.isfinite(costs).all():
            return np.concatenate([[0.0], costs])
    return np.arange(len(history) + 1.0)


def _mean(losses: Vector) -> tuple[float, float]:
    """The mean of finite losses and its standard error, for independent noise around a slow trend."""
    losses = losses[np.isfinite(losses)]
    if not losses.size:
        return math.inf, 0.0
    variance = np.mean(np.diff(losses) ** 2) / 2.0 if losses.size > 1 else math.inf
    return float(losses.mean()), math.sqrt(variance / losses.size)
