"""An episode as an objective like any other: a row of numbers in, a row of numbers out.

in:   parameters of the policy, shift and scale of its observations, a floor per mark, seed
out:  loss = -return, length, outcome, mean of the observations, their summed squared deviations from it, the return so
      far at each mark

Marks are steps at which a return so far below its floor ends the episode; there are none by default. See
`cones.rl.early_ends`.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from cones.errors import InputError
from cones.rl.normaliser import Normaliser
from cones.rl.policy import Network
from cones.rl.source import Source
from cones.types import Matrix, Vector

__all__ = ["CUT", "ENDED", "NUMBERS", "UNENDED", "Episode", "Episodes", "Summary"]

# Outcomes of an episode that did not fail: it has come to its end; a floor, or the most steps there are, has ended it.
ENDED, CUT, UNENDED = 0, -1, -2
NUMBERS = 3  # loss, length, outcome


@dataclass(frozen=True)
class Summary:
    """The returns of episodes: their mean, its confidence interval, deviation and range, and the mean length."""

    episodes: int
    mean: float
    low: float
    high: float
    deviation: float
    least: float
    most: float
    length: float


@dataclass(frozen=True)
class Episodes:
    """The results of episodes, in order.

    Attributes:
        returns: the sum of an episode's rewards; NaN where it failed.
        lengths: its steps.
        moments: shape (episodes, 2, observation): the mean of an episode's observations and their summed
            squared deviations from it.
        problems: why an episode failed, by index.
        so_far: shape (episodes, marks): the return so far at each mark; the last one, where the episode was over.
        is_cut: True where the return so far was below its floor.
    """

    returns: Vector
    lengths: Vector
    moments: Matrix
    problems: dict[int, str]
    so_far: Matrix = field(default_factory=lambda: np.empty((0, 0)))
    is_cut: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))

    @property
    def timesteps(self) -> int:
        return int(self.lengths.sum())

    def summary(self, confidence: float = 0.95) -> Summary:
        """The mean return with its confidence interval (Student's t), of the episodes that did not fail."""
        good = ~np.isnan(self.returns)
        returns, count = self.returns[good], int(good.sum())
        if not count:
            return Summary(0, *[math.nan] * 7)
        mean, deviation = float(returns.mean()), float(returns.std(ddof=1)) if count > 1 else math.nan
        half = (
            float(stdtrit(count - 1, 0.5 + 0.5 * confidence)) * deviation / math.sqrt(count) if count > 1 else math.inf
        )
        extremes = float(returns.min()), float(returns.max())
        return Summary(count, mean, mean - half, mean + half, deviation, *extremes, float(self.lengths[good].mean()))

    def merged_into(self, normaliser: Normaliser) -> Normaliser:
        """The normaliser with the observations of all episodes that did not fail."""
        for k in range(len(self.returns)):
            if k not in self.problems:
                normaliser = normaliser.merged(int(self.lengths[k]), self.moments[k, 0], self.moments[k, 1])
        return normaliser


@dataclass(frozen=True)
class Episode(ABC):
    """A function that runs one episode of a policy. It can be pickled: workers make the environment themselves.

    Args:
        task: makes the environment.
        network: the policy's layers. It sees (observation - shift) * scale.
        space: the environment's spaces; see `cones.rl.spaces`.
        marks: steps at which the return so far is noted and compared with a floor.
    """

    task: Source
    network: Network
    space: dict[str, Any]
    marks: tuple[int, ...] = field(default=(), kw_only=True)

    OUTCOMES: ClassVar[Mapping[int, str]]  # how an episode can fail; {step} is the step in which it did
    RELEASES_LOCK: ClassVar[bool] = False  # True if episodes run in parallel on the threads of one process

    @property
    def width(self) -> int:
        """How many numbers an episode returns."""
        return NUMBERS + 2 * self.network.sizes[0] + len(self.marks)

    @abstractmethod
    def __call__(self, rows: Vector | Matrix) -> Vector | Matrix:
        """Run episodes from the starts that gymnasium's `reset(seed=seed)` gives.

        Args:
            rows: one per episode, as of `rows`; a single row if episodes hold the interpreter lock.
        """

    def rows(
        self, parameters: Matrix, shift: Vector, scale: Vector, seeds: Sequence[int], floors: Matrix | None = None
    ) -> Matrix:
        """One row per episode. Without floors nothing is ended."""
        if len(parameters) != len(seeds):
            raise InputError(f"seeds: expected {len(parameters)}, one per row of parameters, got {len(seeds)}")
        count = len(seeds)
        same = np.tile(np.concatenate([shift, scale]), (count, 1))
        floors = np.full((count, len(self.marks)), -math.inf) if floors is None else floors
        return np.hstack([parameters, same, floors, np.array(seeds, dtype=np.float64).reshape(count, 1)])

    def episodes(self, numbers: Matrix, failures: Mapping[int, str]) -> Episodes:
        """The results of episodes from their numbers. `failures` says why some have none."""
        numbers, seen = numbers.copy(), self.width - len(self.marks)
        numbers[list(failures), 1:] = 0.0
        problems = dict(failures)
        for k in np.flatnonzero(numbers[:, 2] > ENDED):
            problems[int(k)] = self.OUTCOMES[int(numbers[k, 2])].format(step=int(numbers[k, 1]))
        if (numbers[:, 2] == UNENDED).any():
            warnings.warn(
                f"{self.task.name}: an episode had not ended after {int(numbers[:, 1].max())} steps and was cut; if "
                "episodes may be that long, give the environment a limit, as gymnasium.wrappers.TimeLimit does",
                RuntimeWarning,
                stacklevel=2,
            )
        return Episodes(
            returns=-numbers[:, 0],
            lengths=numbers[:, 1].astype(np.int64),
            moments=numbers[:, NUMBERS:seen].reshape(len(numbers), 2, -1),
            problems=dict(sorted(problems.items())),
            so_far=numbers[:, seen:],
            is_cut=numbers[:, 2] == CUT,
        )

    def close(self) -> None:  # noqa: B027 - some hold nothing
        """Release what this thread holds for episodes of this task."""
