"""The interface of a rollout engine: policies in, whole episodes out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from cones.rl.normaliser import Normaliser
from cones.rl.policy import Network
from cones.types import Matrix, Vector

__all__ = ["Episodes", "Rollouts"]


@dataclass(frozen=True)
class Episodes:
    """What became of episodes, in the order they were asked for.

    Attributes:
        returns: the sum of an episode's rewards; NaN where it failed.
        lengths: its steps.
        moments: shape (episodes, 2, observation): the mean of an episode's observations and their summed
            squared deviations from it.
        problems: why an episode failed, by its place.
    """

    returns: Vector
    lengths: Vector
    moments: Matrix
    problems: dict[int, str]

    @property
    def timesteps(self) -> int:
        return int(self.lengths.sum())

    def merged_into(self, normaliser: Normaliser) -> Normaliser:
        """The normaliser with what was observed; failed episodes are left out."""
        for k in range(len(self.returns)):
            if k not in self.problems:
                normaliser = normaliser.merged(int(self.lengths[k]), self.moments[k, 0], self.moments[k, 1])
        return normaliser


class Rollouts(ABC):
    """Runs episodes of one task. The result does not depend on how many threads or processes do it.

    Attributes:
        task: the id of the environment.
        space: its spaces; see `cones.rl.spaces`.
    """

    task: str
    space: dict[str, Any]

    @abstractmethod
    def episodes(
        self, network: Network, parameters: Matrix, shift: Vector, scale: Vector, seeds: Sequence[int]
    ) -> Episodes:
        """One episode per row of `parameters`, each from the start that gymnasium's `reset(seed=...)` gives.

        The network sees (observation - shift) * scale.
        """

    def close(self) -> None:  # noqa: B027 - some hold nothing
        """Release threads, processes and environments."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def collected(results: Sequence[tuple[float, int, Matrix, str]]) -> Episodes:
    """Episodes from one (return, length, moments, problem or nothing) each."""
    problems = {place: result[3] for place, result in enumerate(results) if result[3]}
    return Episodes(
        np.array([np.nan if result[3] else result[0] for result in results]),
        np.array([result[1] for result in results], dtype=np.int64),
        np.array([result[2] for result in results]),
        problems,
    )
