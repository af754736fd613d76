"""Evaluators as users write them. Tests name them as `own_evaluators:Name`."""

from __future__ import annotations

from typing import Any

import numpy as np

from cones.evaluate import Candidates, Evaluator, Objective, rows


class Reversed(Evaluator):
    """Evaluates the last candidate first."""

    def __init__(self, objective: Objective) -> None:
        super().__init__()
        self._objective = objective
        self.ends: list[str] = []

    def losses(self, candidates: Candidates) -> Any:
        count = len(candidates)
        order = reversed(range(count))
        losses = {k: self._objective.losses(rows(candidates, k, k + 1), k)[0] for k in order}
        return np.array([losses[k] for k in range(count)])

    def close(self) -> None:
        self.ends.append("closed")

    def abort(self) -> None:
        self.ends.append("aborted")
