"""An episode as an objective like any other: a row of numbers in, a row of numbers out.

in:   parameters of the policy, shift and scale of its observations, seed
out:  loss = -return, length, outcome, mean of the observations, their summed squared deviations from it
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import stdtrit

from cones.errors import InputError
from cones.rl.normaliser import Normaliser
from cones.rl.policy import Network
from cones.rl.source import Source
from cones.types import Matrix, Vector

__all__ = ["ENDED", "Episode", "Episodes", "Summary"]

ENDED = 0  # the outcome of an episode that did not fail
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
    """

    returns: Vector
    lengths: Vector
    moments: Matrix
    problems: dict[int, str]

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
    """

    task: Source
    network: Network
    space: dict[str, Any]

    OUTCOMES: ClassVar[Mapping[int, str]]  # how an episode can fail; {step} is the step in which it did
    RELEASES_LOCK: ClassVar[bool] = False  # True if episodes run in parallel on the threads of one process

    @property
    def width(self) -> int:
        """How many numbers an episode returns."""
        return NUMBERS + 2 * self.network.sizes[0]

    @abstractmethod
    def run(self, parameters: Vector, shift: Vector, scale: Vector, seed: int, result: Vector, moments: Matrix) -> None:
        """Run an episode from the start that gymnasium's `reset(seed=seed)` gives.

        Writes return, length and outcome to `result`, and the two moments of the observations to `moments`.
        """

    def __call__(self, row: Vector) -> Vector:
        numbers, dim, size = np.empty(self.width), self.network.dim, self.network.sizes[0]
        shift, scale = row[dim : dim + size], row[dim + size : dim + 2 * size]
        moments = numbers[NUMBERS:].reshape(2, size)
        self.run(row[:dim], shift, scale, int(row[-1]), numbers[:NUMBERS], moments)
        numbers[0] = np.nan if numbers[2] else -numbers[0]
        return numbers

    def rows(self, parameters: Matrix, shift: Vector, scale: Vector, seeds: Sequence[int]) -> Matrix:
        """One row per episode."""
        if len(parameters) != len(seeds):
            raise InputError(f"seeds: expected {len(parameters)}, one per row of parameters, got {len(seeds)}")
        count = len(seeds)
        same = np.tile(np.concatenate([shift, scale]), (count, 1))
        return np.hstack([parameters, same, np.array(seeds, dtype=np.float64).reshape(count, 1)])

    def episodes(self, numbers: Matrix, failures: Mapping[int, str]) -> Episodes:
        """The results of episodes from their numbers. `failures` says why some have none."""
        numbers = numbers.copy()
        numbers[list(failures), 1:] = 0.0
        problems = dict(failures)
        for k in np.flatnonzero(numbers[:, 2]):
            problems[int(k)] = self.OUTCOMES[int(numbers[k, 2])].format(step=int(numbers[k, 1]))
        return Episodes(
            returns=-numbers[:, 0],
            lengths=numbers[:, 1].astype(np.int64),
            moments=numbers[:, NUMBERS:].reshape(len(numbers), 2, -1),
            problems=dict(sorted(problems.items())),
        )

    def close(self) -> None:  # noqa: B027 - some hold nothing
        """Release what this thread holds for episodes of this task."""
