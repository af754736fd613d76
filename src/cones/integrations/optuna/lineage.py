"""Which trials of a study were told to the strategy: its state, read from the study alone.

Candidates follow from a seed and from the losses of all populations before. A trial that evaluates a candidate
therefore says in one attribute where it belongs: its iteration, its candidate, the seed, and the trials whose
losses made the population before its own (`parents`). From these any process finds the same state as any other, also
after a restart, and whatever trials were lost on the way: where two processes went different ways, the trial with the
lowest number decides.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["PLACE", "Lineage", "Place", "lineage"]

PLACE = "cones:place"


@dataclass(frozen=True)
class Place:
    """Where a trial belongs."""

    run: str  # names the search space and the settings
    seed: int
    iteration: int
    candidate: int
    parents: tuple[int, ...]

    def attribute(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, attribute: dict[str, Any]) -> Place:
        return cls(**{**attribute, "parents": tuple(attribute["parents"])})


@dataclass(frozen=True)
class Member:
    """A trial of the run. Its loss is None as long as it is under way, and NaN if it failed or was pruned."""

    number: int
    place: Place
    loss: float | None


@dataclass(frozen=True)
class Lineage:
    """The seed, the populations that were told, and the trials of the one under way."""

    seed: int
    told: tuple[tuple[Member, ...], ...]
    members: tuple[Member, ...]

    def next_candidate(self, popsize: int, number: int) -> int:
        """The candidate for a trial: one that none has yet, or else one that is still under way.

        The latter is evaluated twice then; but no trial that was killed, and is under way for ever, can keep
        the population from being complete.
        """
        taken: dict[int, list[Member]] = defaultdict(list)
        for member in self.members:
            taken[member.place.candidate].append(member)
        free = [candidate for candidate in range(popsize) if candidate not in taken]
        if free:
            return free[number % len(free)]  # processes that choose at the same time choose differently
        open_ones = {k: found for k, found in taken.items() if all(member.loss is None for member in found)}
        return min(open_ones, key=lambda candidate: (len(open_ones[candidate]), open_ones[candidate][0].number))


def lineage(members: Iterable[Member], popsize: int, seed: int) -> Lineage:
    """The state of a run from its trials, in the order of their numbers; `seed` is for one that has none yet."""
    by_iteration: dict[int, list[Member]] = defaultdict(list)
    for member in members:
        by_iteration[member.place.iteration].append(member)
    here = by_iteration[0]
    seed = here[0].place.seed if here else seed
    here = [member for member in here if member.place.seed == seed]
    told: list[tuple[Member, ...]] = []
    while True:
        finished = {member.number: member for member in here if member.loss is not None}
        following = by_iteration.get(len(told) + 1, [])
        leader = next((member for member in following if _follows(member, finished, popsize)), None)
        if leader is not None:
            population = tuple(finished[number] for number in leader.place.parents)
        else:
            first: dict[int, Member] = {}
            for member in finished.values():
                first.setdefault(member.place.candidate, member)
            if len(first) < popsize:
                return Lineage(seed, tuple(told), tuple(here))
            population = tuple(first[candidate] for candidate in range(popsize))
        told.append(population)
        here = (
            [] if leader is None else [member for member in following if member.place.parents == leader.place.parents]
        )


def _follows(member: Member, finished: dict[int, Member], popsize: int) -> bool:
    parents = [finished.get(number) for number in member.place.parents]
    return len(parents) == popsize and all(
        parent is not None and parent.place.candidate == candidate for candidate, parent in enumerate(parents)
    )


def same(one: tuple[Member, ...], other: tuple[Member, ...]) -> bool:
    """Whether two populations were told the same."""
    return all(
        a.number == b.number and (a.loss == b.loss or (math.isnan(a.loss or 0.0) and math.isnan(b.loss or 0.0)))
        for a, b in zip(one, other, strict=True)
    )
