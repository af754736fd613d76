"""Candidates that are out and results that have arrived: ask and tell in any number and order.

Candidates are drawn in populations, so that any of them can be drawn again from its number alone. One that is out is
known by the bits of its row. Results wait until together they are worth a population; see `cones.sampling.worth`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cones.beliefs import Gaussian
from cones.component import Storable
from cones.errors import InputError
from cones.sampling import Population
from cones.sampling.worth import FOREIGN, worths
from cones.types import Matrix, Vector

__all__ = ["Arrivals", "Draw", "Identity", "Results"]

# A candidate that has been out for more iterations than this is forgotten.
OLDEST = 1000
# Keys of candidates that were told, for a better message.
KEPT_KEYS = 1000

Identity = tuple[int, int]  # number of the population that was drawn, index in it


@dataclass(frozen=True)
class Draw(Storable):
    """A population that was drawn: its candidates, and the iteration and the restart that it belongs to."""

    population: Population
    iteration: int
    restart: int

    def points(self) -> Matrix:
        """Its candidates before they are reflected into bounds."""
        whole = Population(
            self.population.belief, self.population.plan, self.population.noise, self.population.iteration
        )
        return whole.block(0, len(whole))

    def log_densities(self, points: Matrix) -> Vector:
        """Log density of points by the belief that drew them; NaN where it did not draw them by itself."""
        belief = self.population.belief
        if self.population.plan.transform is not None or not isinstance(belief, Gaussian):
            return np.full(len(points), np.nan)
        return belief.log_density(points)


class Results(NamedTuple):
    """Evaluated points that wait for the next step: one row, one number or one flag each."""

    points: Matrix  # before they were reflected into bounds
    candidates: Matrix  # as they were evaluated
    losses: Vector
    log_densities: Vector
    drawn: Vector  # the iteration, or FOREIGN

    def joined(self, other: Results) -> Results:
        return Results(*(np.concatenate(parts) for parts in zip(self, other, strict=True)))


class Arrivals(Storable):
    """What is out, what is to be asked again, and what has arrived.

    Args:
        draws: populations with candidates that are out, by number.
        out: candidates that are out, in the order in which they were asked for.
        again: those of them that `ask` returns first: they were out when the run was saved.
        results: what has arrived since the last step.
        weighed, weights: an iteration, and the weights of the first results in it; see `cones.sampling.worth`. They are
            kept because the last bits of a product depend on how many rows it has.
        number: of the next population.
        served: how many candidates of the latest population were handed out.
    """

    def __init__(
        self,
        dim: int,
        dtype: str = "float64",
        draws: dict[int, Draw] | None = None,
        out: Sequence[Identity] = (),
        again: Sequence[Identity] = (),
        results: Results | None = None,
        weighed: int = -1,
        weights: Vector | None = None,
        number: int = 0,
        served: int = 0,
    ) -> None:
        self.dim, self.dtype = dim, dtype
        self.draws = dict(draws or {})
        self.again = list(again)
        self.results = none_yet(dim, dtype) if results is None else results
        self.weighed, self.weights = weighed, np.empty(0) if weights is None else weights
        self.number, self.served = number, served
        self._points: dict[int, Matrix] = {}
        self._densities: dict[int, Vector] = {}
        self._keys: dict[bytes, list[Identity]] = {}
        self._told: OrderedDict[bytes, None] = OrderedDict()
        self.out: dict[Identity, None] = {}
        for identity in out:
            self._register(identity, self.candidates([identity])[0])

    def stored(self) -> dict[str, Any]:
        return {
            "dim": self.dim,
            "dtype": self.dtype,
            "draws": {str(number): draw for number, draw in self.draws.items()},
            "out": tuple(self.out),
            "again": tuple(self.again),
            "results": tuple(self.results),
            "weighed": self.weighed,
            "weights": self.weights,
            "number": self.number,
            "served": self.served,
        }

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Arrivals:
        draws = {int(number): draw for number, draw in parts["draws"].items()}
        return cls(**{**parts, "draws": draws, "results": Results(*parts["results"])})

    def add(self, draw: Draw) -> Draw:
        """Add a population, of which nothing is handed out yet."""
        self.draws[self.number] = draw
        self.number, self.served = self.number + 1, 0
        return draw

    def points(self, number: int) -> Matrix:
        if number not in self._points:
            self._points[number] = self.draws[number].points()
        return self._points[number]

    def _log_densities(self, number: int) -> Vector:
        if number not in self._densities:
            self._densities[number] = self.draws[number].log_densities(self.points(number))
        return self._densities[number]

    def candidates(self, identities: Sequence[Identity]) -> Matrix:
        """Candidates by identity, as they are evaluated."""
        rows = self._rows(identities)
        box = self.draws[identities[0][0]].population.box if identities else None
        return rows if box is None else np.ascontiguousarray(box.reflect(rows))

    def _rows(self, identities: Sequence[Identity]) -> Matrix:
        rows = np.empty((len(identities), self.dim), self.dtype)
        for row, (number, index) in zip(rows, identities, strict=True):
            row[:] = self.points(number)[index]
        return rows

    def hand_out(self, identities: Sequence[Identity]) -> Matrix:
        """Note that these candidates are out now."""
        candidates = self.candidates(identities)
        for identity, row in zip(identities, candidates, strict=True):
            if identity not in self.out:
                self._register(identity, row)
        candidates.flags.writeable = False
        return candidates

    def _register(self, identity: Identity, row: Vector) -> None:
        self.out[identity] = None
        self._keys.setdefault(row.tobytes(), []).append(identity)

    def knows(self, key: bytes) -> bool:
        """True if a candidate with these bits is out, or was told lately."""
        return key in self._keys or self._was_told(key)

    def _was_told(self, key: bytes) -> bool:
        """True if a candidate with these bits, or one whose rounding to float32 they are, was told lately."""
        row = np.frombuffer(key, self.dtype)
        with np.errstate(over="ignore"):
            rounded = row.astype(np.float32)
        return key in self._told or (np.array_equal(row, rounded) and rounded.tobytes() in self._told)

    def identified(self, rows: Matrix) -> list[Identity]:
        """The identities of candidates that are out; an error that names a row that is not."""
        found: list[Identity] = []
        for index, row in enumerate(rows):
            key = row.tobytes()
            free = next((identity for identity in self._keys.get(key, ()) if identity not in found), None)
            if free is None:
                raise InputError(
                    f"X: expected candidates of ask() that were not told yet, got row {index}, {self._reason(key)}"
                )
            found.append(free)
        return found

    def _reason(self, key: bytes) -> str:
        if key in self._keys or self._was_told(key):
            return "a candidate that was told before"
        return (
            "which is none of them: it is from another run, was changed, has less than the precision of float32, or "
            f"has been out for more than {OLDEST} iterations; tell_known() takes evaluations of any origin"
        )

    def arrived(self, identities: Sequence[Identity], losses: Vector, restart: int) -> None:
        """Move candidates from what is out to the results. Those of an earlier descent are not used."""
        used = [k for k, (number, _) in enumerate(identities) if self.draws[number].restart == restart]
        kept = [identities[k] for k in used]
        if kept:
            points = self._rows(kept)
            log_densities = np.array([self._log_densities(number)[index] for number, index in kept])
            drawn = np.array([self.draws[number].iteration for number, _ in kept], np.float64)
            new = Results(points, self.candidates(kept), losses[used], log_densities, drawn)
            self.results = self.results.joined(new)
        for identity, row in zip(identities, self.candidates(identities), strict=True):
            self._forget(identity, row)
        self._drop_draws()

    def known(self, points: Matrix, losses: Vector) -> None:
        """Add foreign points to the results."""
        nothing, drawn = np.full(len(points), np.nan), np.full(len(points), float(FOREIGN))
        self.results = self.results.joined(Results(points, points, losses, nothing, drawn))

    def worths(self, belief: Gaussian, iteration: int) -> Vector:
        """The weights of all results. Those that have been weighed in this iteration are not weighed again."""
        if self.weighed != iteration:
            self.weighed, self.weights = iteration, np.empty(0)
        first, results = len(self.weights), self.results
        new = worths(belief, results.points[first:], results.log_densities[first:], results.drawn[first:], iteration)
        self.weights = np.concatenate([self.weights, new])
        return self.weights

    def clear(self) -> None:
        """Forget the results: the belief has moved."""
        self.results, self.weights = none_yet(self.dim, self.dtype), np.empty(0)

    def ask_again(self) -> None:
        """`ask` returns first what is out now: whoever had it is gone."""
        self.again = list(self.out)

    def expire(self, iteration: int) -> None:
        """Forget candidates that have been out for too long."""
        old = [key for key in self.out if self.draws[key[0]].iteration < iteration - OLDEST]
        if old:
            for identity, row in zip(old, self.candidates(old), strict=True):
                self._forget(identity, row)
            self._drop_draws()

    def _forget(self, identity: Identity, row: Vector) -> None:
        key = row.tobytes()
        self.out.pop(identity)
        if identity in self.again:
            self.again.remove(identity)
        same = self._keys[key]
        same.remove(identity)
        if not same:
            del self._keys[key]
        self._told[key] = self._told[row.astype(np.float32).tobytes()] = None
        while len(self._told) > KEPT_KEYS:
            self._told.popitem(last=False)

    def _drop_draws(self) -> None:
        needed = {number for number, _ in self.out} | {self.number - 1}
        for number in [number for number in self.draws if number not in needed]:
            del self.draws[number]
            self._points.pop(number, None)
            self._densities.pop(number, None)


def none_yet(dim: int, dtype: str) -> Results:
    rows, numbers = np.empty((0, dim), dtype), np.empty(0)
    return Results(rows, rows, numbers, numbers, numbers)
