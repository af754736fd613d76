r"""Early ends of training episodes, by the return so far.

An episode is ended when it is as good as sure to be among the worse half, as measured on episodes that ran to their
end. Every fourth candidate is a control, which nothing ends. Of the last 200 control episodes, R_j(t) is the return
after t steps, F_j the final one, and m the median of all F. Among those that were still running at t, sorted by R_j(t),
the floor c_t is the highest for which

    (b + 1) / (k + 2) <= 1/10          k of them at or below c_t, b of these with F >= m in the end

the expected share of good episodes among those that the floor ends, if all shares were equally likely before. So a
floor needs at least 8 controls at or below it, and 18 if one of them was good. An episode with R(t) < c_t ends at mark
t. It counts with the return that is expected of it, as if it went on like the median of the k,

    min( m, median F + R(t) - median R(t) )

Marks are 8, 12, 18, 27, ... steps, each half as many again. Floors come from earlier populations, not from the one that
is under way, so that a run does not depend on which of its episodes are done first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from cones.checks import check_array
from cones.component import Storable
from cones.errors import InputError
from cones.rl.episode import Episodes
from cones.types import Matrix, Vector

__all__ = ["CONTROL_EVERY", "MARKS", "EarlyEnds", "Floors"]

MARKS = tuple(round(8 * 1.5**k) for k in range(18))
CONTROL_EVERY = 4
KEPT = 200  # control episodes
WRONG = 0.1  # the share of good episodes among those that are ended


@dataclass(frozen=True)
class Floors:
    """Per mark: the floor, and medians over the controls at or below it.

    Args:
        floors: returns so far; -inf where none is ended.
        so_far, final, length: the medians of return so far, final return, and steps.
        median: the median of final returns.
    """

    floors: Vector
    so_far: Vector
    final: Vector
    length: Vector
    median: float

    def expected(self, episodes: Episodes) -> tuple[Vector, Vector]:
        """The returns of episodes, expected ones where they were ended; and the steps that were saved, as expected."""
        returns, saved = episodes.returns.copy(), np.zeros(len(episodes.returns))
        for k in np.flatnonzero(episodes.is_cut):
            mark = MARKS.index(int(episodes.lengths[k]))
            returns[k] = min(self.median, self.final[mark] + returns[k] - self.so_far[mark])
            saved[k] = max(0.0, self.length[mark] - MARKS[mark])
        return returns, saved


@dataclass(frozen=True)
class EarlyEnds(Storable):
    """The control episodes that are remembered, the latest last: returns at all marks, final return, steps."""

    controls: Matrix

    @staticmethod
    def empty() -> EarlyEnds:
        return EarlyEnds(np.empty((0, len(MARKS) + 2)))

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Self:
        controls = check_array("controls", parts["controls"])
        if controls.ndim != 2 or controls.shape[1] != len(MARKS) + 2:
            raise InputError(f"controls: expected rows of {len(MARKS) + 2} numbers, got shape {controls.shape}")
        return cls(controls)

    def after(self, episodes: Episodes, is_control: Vector) -> EarlyEnds:
        """With the controls among these episodes."""
        rows = [k for k in np.flatnonzero(is_control) if k not in episodes.problems]
        new = np.column_stack([episodes.so_far[rows], episodes.returns[rows], episodes.lengths[rows]])
        return EarlyEnds(np.concatenate([self.controls, new])[-KEPT:])

    def floors(self) -> Floors:
        """The floors of the next episodes."""
        count = len(MARKS)
        floors = np.full(count, -math.inf)
        medians = np.full((3, count), math.nan)
        final, lengths = self.controls[:, -2], self.controls[:, -1]
        median = float(np.median(final)) if len(final) else math.nan
        for mark in range(count):
            running = self.controls[lengths > MARKS[mark]]
            if not len(running):
                break
            order = running[np.argsort(running[:, mark], kind="stable")]
            below = np.arange(1, len(order) + 1)
            sure = np.flatnonzero((np.cumsum(order[:, -2] >= median) + 1) / (below + 2) <= WRONG)
            if sure.size:
                ended = order[: sure[-1] + 1]
                floors[mark] = ended[-1, mark]
                medians[:, mark] = np.median(ended[:, [mark, -2, -1]], axis=0)
        return Floors(floors, medians[0], medians[1], medians[2], median)
