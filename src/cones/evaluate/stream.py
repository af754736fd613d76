"""Candidates one after the other: what is put in comes back with its loss when it is done, in any order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any, Generic, Self, TypeVar

from cones.types import Vector

__all__ = ["Stream"]

K = TypeVar("K", bound=Hashable)


class Stream(ABC, Generic[K]):
    """Evaluates candidates as they come; see `Evaluator.stream`.

    A loss is a number, or the row of numbers that an objective of `width` > 1 returns.

    Attributes:
        failures: reasons why candidates of the last `take` have no loss, by key.
    """

    def __init__(self) -> None:
        self.failures: dict[K, str] = {}

    @abstractmethod
    def free(self) -> int:
        """How many candidates to put in: as many as workers are free, and a few where one would wait for the caller."""

    @abstractmethod
    def put(self, key: K, candidate: Vector) -> None:
        """Begin to evaluate a candidate, which `take` gives back as `key`."""

    @abstractmethod
    def take(self) -> list[tuple[K, Any]]:
        """Wait until a candidate is done. All that are done by then, with their losses; NaN for a failure."""

    def close(self) -> None:
        """Give up what is in progress."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
