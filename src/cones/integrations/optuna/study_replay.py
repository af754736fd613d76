"""Reconstruct the state of a run from the trials of a study.

The seed and the losses of all earlier populations determine the candidates. A trial therefore stores its position in
one attribute: its iteration, its candidate, the seed, and the trials whose losses were told before its population
(`parents`). Every process replays the same state from these positions, after a restart too. Where two processes
disagree, the trial with the lowest number decides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Self

from cones.integrations.optuna.ranking import Standing

__all__ = ["POSITION", "Member", "Position", "StudyReplay", "same"]

POSITION = "cones:place"


@dataclass(frozen=True)
class Position:
    """The position of a trial in a run."""

    run: str  # identifies the search space and the settings
    seed: int
    iteration: int
    candidate: int
    parents: tuple[int, ...]

    def attribute(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, attribute: Any) -> Self | None:
        """The position that an attribute holds; None if it holds none, whoever has written it."""
        try:
            position = cls(**{**attribute, "parents": tuple(attribute["parents"])})
        except (TypeError, KeyError):
            return None
        counts = (position.seed, position.iteration, position.candidate, *position.parents)
        fits = type(position.run) is str and all(type(count) is int and count >= 0 for count in counts)
        return position if fits else None


@dataclass(frozen=True)
class Member:
    """A trial of the run; `standing` is None while it is running."""

    number: int
    position: Position
    standing: Standing | None


@dataclass(frozen=True)
class StudyReplay:
    """The seed, the populations told so far, and the trials of the current population."""

    seed: int
    told: tuple[tuple[Member, ...], ...]
    members: tuple[Member, ...]

    @classmethod
    def of(cls, members: Iterable[Member], popsize: int, seed: int) -> Self:
        """Replay trials in the order of their numbers. The first trial's seed replaces `seed`."""
        by_iteration: dict[int, list[Member]] = defaultdict(list)
        for member in members:
            if member.position.candidate < popsize:
                by_iteration[member.position.iteration].append(member)
        here = by_iteration[0]
        seed = here[0].position.seed if here else seed
        here = [member for member in here if member.position.seed == seed]
        told: list[tuple[Member, ...]] = []
        while True:
            finished = {member.number: member for member in here if member.standing is not None}
            following = by_iteration.get(len(told) + 1, [])
            leader = next((member for member in following if _follows(member, finished, popsize)), None)
            if leader is not None:
                parents = leader.position.parents
                told.append(tuple(finished[number] for number in parents))
                here = [member for member in following if member.position.parents == parents]
                continue
            first: dict[int, Member] = {}
            for member in finished.values():
                first.setdefault(member.position.candidate, member)
            if len(first) < popsize:
                return cls(seed, tuple(told), tuple(here))
            told.append(tuple(first[candidate] for candidate in range(popsize)))
            here = []

    def next_candidate(self, popsize: int, number: int) -> int:
        """Choose a candidate for a trial: one without a trial, or else one whose trials are all still running.

        The second case evaluates a candidate twice. Without it, a killed trial that never finishes would block the
        population for ever.
        """
        taken: dict[int, list[Member]] = defaultdict(list)
        for member in self.members:
            taken[member.position.candidate].append(member)
        free = [candidate for candidate in range(popsize) if candidate not in taken]
        if free:
            return free[number % len(free)]  # processes that choose at the same time choose differently
        running = {k: found for k, found in taken.items() if all(member.standing is None for member in found)}
        return min(running, key=lambda candidate: (len(running[candidate]), running[candidate][0].number))


def _follows(member: Member, finished: dict[int, Member], popsize: int) -> bool:
    parents = [finished.get(number) for number in member.position.parents]
    return len(parents) == popsize and all(
        parent is not None and parent.position.candidate == candidate for candidate, parent in enumerate(parents)
    )


def same(one: tuple[Member, ...], other: tuple[Member, ...]) -> bool:
    """True if two populations consist of the same trials that ended in the same way."""
    return all(a.number == b.number and repr(a.standing) == repr(b.standing) for a, b in zip(one, other, strict=True))
