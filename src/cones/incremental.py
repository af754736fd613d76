"""Ask and tell for single candidates: in any number, in any order, in parts, late or never.

A worker that is free asks for a candidate at once. The belief moves whenever the results that have arrived are worth a
population; what an older result is worth is said in `cones.sampling.worth`.
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from cones.arrivals import Arrivals, Draw, Identity, Results
from cones.beliefs import Gaussian
from cones.checks import check_array, check_kind
from cones.errors import InputError
from cones.progress import Outcome
from cones.sampling import NoiseStream, Population
from cones.space.lagrangian import Told
from cones.strategy import Strategy
from cones.types import Matrix, Vector

__all__ = ["LARGEST_POPULATION", "IncrementalStrategy", "known_evaluations"]

# Populations of more bytes than this are computed in chunks.
LARGEST_POPULATION = 2**30
ROUNDING = 1e-9  # of a sum of weights


class IncrementalStrategy(Strategy):
    """A strategy whose candidates can be asked for and told one at a time.

    Attributes:
        arrivals: what is out and what has arrived; None until a candidate is asked for by itself.
        journal: called with every event, `journal(kind, *content)`; see `cones.run.journal`.
    """

    SAVED_FIELDS: ClassVar[tuple[str, ...]] = (*Strategy.SAVED_FIELDS, "arrivals")
    noise: NoiseStream
    chunked: bool | None

    def __init__(self, arrivals: Arrivals | None = None, **common: Any) -> None:
        super().__init__(**common)
        check_kind("arrivals", arrivals, (Arrivals, type(None)))
        if arrivals is not None and arrivals.dim != self.state.belief.dim:
            raise InputError(f"arrivals: expected {self.state.belief.dim} coordinates, got {arrivals.dim}")
        self.arrivals = arrivals
        self.journal: Callable[..., None] | None = None
        self._adopted = -1  # the iteration whose whole population is told one by one

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "journal": None, "arrivals": copy.deepcopy(self.arrivals)}

    @abstractmethod
    def _draw(self, number: int) -> Population:
        """A population of independent candidates of the current belief; each number has noise of its own."""

    @abstractmethod
    def _move_by(self, results: Results, weights: Vector) -> Outcome:
        """The outcome of an iteration with weighted results, at least one of them below +inf."""

    @abstractmethod
    def _asked_population(self) -> Population | None:
        """The population of the last `ask()`; None if there is none."""

    def _ask_some(self, count: int) -> Matrix:
        return self.ask_identified(count)[1]

    def ask_identified(self, count: int) -> tuple[list[Identity], Matrix]:
        """As `ask(count)`, with the identities by which `tell_identified` takes the losses."""
        arrivals = self._single()
        self._note("ask", count)
        found = arrivals.again[:count]
        del arrivals.again[: len(found)]
        while len(found) < count:
            latest = arrivals.draws.get(arrivals.number - 1)
            if latest is None or latest.iteration != self.state.iteration or arrivals.served >= len(latest.population):
                latest = arrivals.add(Draw(self._draw(arrivals.number), self.state.iteration, self.state.restarts))
            stop = min(arrivals.served + count - len(found), len(latest.population))
            found += [(arrivals.number - 1, index) for index in range(arrivals.served, stop)]
            arrivals.served = stop
        return found, arrivals.hand_out(found)

    def _single(self) -> Arrivals:
        """The arrivals; an error if this method cannot do without whole populations."""
        belief = self.state.belief
        if self.space is not None:
            raise InputError("count: expected none in a space, which is asked for whole populations, got one")
        if not isinstance(belief, Gaussian):
            raise InputError(f"count: expected none with a belief that is no Gaussian, got a {type(belief).__name__}")
        size = self.popsize * belief.dim * np.dtype(self.noise.dtype).itemsize
        if self.chunked or size > LARGEST_POPULATION:
            raise InputError(f"count: expected none with a population in chunks, got one of {size} bytes")
        if self.state.lagrangian is not None:
            raise InputError("count: expected none with constraints, which need whole populations, got one")
        if self.arrivals is None:
            self.arrivals = Arrivals(belief.dim, self.noise.dtype)
        return self.arrivals

    def _is_part(self, X: ArrayLike | Population) -> bool:
        whole = None if self._asked is None else self._asked[1]
        if isinstance(X, Population) or isinstance(whole, Population):
            return False
        if whole is not None and self._adopted != self.state.iteration and (X is whole or np.array_equal(X, whole)):
            return False
        rows = np.asarray(X)
        if rows.ndim != 2 or rows.shape[1] != self.state.belief.dim or rows.dtype.kind not in "fiu":
            return False
        if whole is not None and self._adopted != self.state.iteration and np.array_equal(rows, whole.astype("f4")):
            return False
        rows = self._unrounded(rows)
        keys = {row.tobytes() for row in rows}
        if whole is not None and not keys.isdisjoint(row.tobytes() for row in whole):
            return True
        if self.arrivals is None:
            return False
        by_itself = whole is None or rows.shape != np.shape(whole)
        return any(map(self.arrivals.knows, keys)) or (by_itself and bool(self.arrivals.out))

    def _tell_some(self, X: Any, values: ArrayLike) -> None:
        arrivals = self._single()
        rows = self._unrounded(check_array("X", X))
        losses = _losses_of(values, len(rows))
        if self._asked is not None and self._adopted != self.state.iteration:
            self.adopt()
        self.tell_identified(arrivals.identified(rows), losses)

    def _unrounded(self, rows: Matrix) -> Matrix:
        """Rows of candidates; those that went through float32, as in JAX and PyTorch, as they were before."""
        rows = np.ascontiguousarray(rows, self.noise.dtype)
        with np.errstate(over="ignore"):
            if rows.dtype == np.float32 or not np.array_equal(rows.astype(np.float32), rows):
                return rows
            known = [] if self._asked is None else [np.asarray(self._asked[1])]
            known += [] if self.arrivals is None else [self.arrivals.candidates(list(self.arrivals.out))]
            originals: dict[bytes, dict[bytes, Vector]] = {}  # of which one is known by its rounding, if it is the only
            for row in (row for part in known for row in part):
                originals.setdefault(row.astype(np.float32).tobytes(), {})[row.tobytes()] = row
            found = [originals.get(row.astype(np.float32).tobytes(), {}) for row in rows]
            return np.array([next(iter(o.values())) if len(o) == 1 else r for o, r in zip(found, rows, strict=True)])

    def adopt(self) -> None:
        """Let the candidates of the last `ask()` be told one by one; `tell` does this for a part of them."""
        arrivals, population = self._single(), self._asked_population()
        if population is None:
            return
        self._note("adopt")
        arrivals.add(Draw(population, self.state.iteration, self.state.restarts))
        arrivals.served = len(population)
        arrivals.hand_out([(arrivals.number - 1, index) for index in range(len(population))])
        self._adopted = self.state.iteration

    def tell_identified(self, identities: Sequence[Identity], losses: Vector) -> None:
        """Tell the losses of candidates that are out, by identity; see `ask_identified`."""
        arrivals = self._single()
        for identity in identities:
            if identity not in arrivals.out:
                raise InputError(f"identities: expected those of candidates that are out, got {identity}")
        self._note("tell", [list(identity) for identity in identities], losses.tolist())
        candidates = arrivals.candidates(identities)
        arrivals.arrived(identities, losses, self.state.restarts)
        self._count(candidates, losses, len(losses))
        self._move_if_worth(arrivals)

    def tell_known(self, X: ArrayLike, values: ArrayLike) -> None:
        """Tell evaluations of any origin, such as another program's. They do not count as evaluations of this run.

        They take part in the next step of the belief, and the best of them is the result until a better one is told.
        To begin a run with many, use `initial`.

        Args:
            X: points, one per row.
            values: their losses.
        """
        arrivals = self._single()
        points, losses = known_evaluations("X", X, "values", values, self.state.belief.dim)
        self._note("known", points.tolist(), losses.tolist())
        points = points.astype(self.noise.dtype)
        arrivals.known(points, losses)
        self._count(points, losses, 0)

    def count_aside(self, candidates: Matrix, losses: Vector) -> None:
        """Count evaluations that do not move the belief. The best of them is the result until a better one is told."""
        self._count(candidates, losses, len(losses))

    def _count(self, candidates: Matrix, losses: Vector, evaluations: int) -> None:
        """Count results as they come; the best one counts before the belief moves."""
        state = self.state
        best = int(np.where(np.isnan(losses), math.inf, losses).argmin())
        state = replace(state, evaluations=state.evaluations + evaluations)
        if losses[best] < state.best_fun or (state.best_x is None and not np.isnan(losses[best])):
            state = replace(state, best_x=candidates[best].copy(), best_fun=float(losses[best]), violation=0.0)
        self.state = state

    def _move_if_worth(self, arrivals: Arrivals) -> None:
        """Move the belief once the results are worth a population."""
        results, belief = arrivals.results, self.state.belief
        if len(results.losses) < self.popsize or not isinstance(belief, Gaussian):
            return
        weights = arrivals.worths(belief, self.state.iteration)
        if float(weights.sum()) < self.popsize - ROUNDING:
            return

        def move(losses: Vector, told: Told | None) -> Outcome:
            return self._move_by(results, weights) if (losses < math.inf).any() else self._unmoved()

        losses = results.losses.copy()
        losses.flags.writeable = False
        self._advance(losses, move, results.candidates, 0)
        arrivals.clear()  # after the step: an interrupted one leaves them for the next
        arrivals.expire(self.state.iteration)

    def ask_again(self) -> None:
        """Let `ask(count)` return first what is out now: whoever had it is gone. `cones.load` does this."""
        if self.arrivals is not None and self.arrivals.out:
            self._note("again")
            self.arrivals.ask_again()

    def _note(self, kind: str, *content: Any) -> None:
        if self.journal is not None:
            self.journal(kind, *content)


def known_evaluations(name: str, X: ArrayLike, of_values: str, values: ArrayLike, dim: int) -> tuple[Matrix, Vector]:
    """Points and their losses from a user, checked: finite points, and losses that are numbers, not NaN."""
    points = check_array(name, X)
    if points.ndim != 2 or points.shape[1] != dim or not len(points):
        raise InputError(f"{name}: expected points, one per row of {dim} numbers, got shape {points.shape}")
    losses = _losses_of(values, len(points), of_values)
    for what, array in ((name, points), (of_values, losses)):
        bad = ~np.isfinite(array) if array.ndim == 2 else np.isnan(array)
        if bad.any():
            first = tuple(int(k) for k in np.argwhere(bad)[0])
            raise InputError(f"{what}: expected known numbers, got {array[first]} in row {first[0]}")
    return points, losses


def _losses_of(values: ArrayLike, count: int, name: str = "values") -> Vector:
    losses = check_array(name, values)
    if losses.shape != (count,):
        raise InputError(f"{name}: expected {count} losses, one per row, got shape {losses.shape}")
    return losses.astype(np.float64)
