r"""Constraints g(x) <= 0 by an augmented Lagrangian, whose multipliers come from a regression.

Candidates are ranked by their merit, with multipliers y >= 0 and penalties w > 0,

    merit(x) = f(x) + sum_i ( max(0, y_i + w_i g_i(x))^2 - y_i^2 ) / (2 w_i)

which has its minimum at the solution if y are the multipliers of the solution. They are estimated in every iteration
from the latest evaluations, and no gradient is needed: in the frame of the belief, where a step z costs a/2 |z|^2, the
solution of the linearised problem

    min_z  grad f^T z + a/2 |z|^2    subject to    g + grad g^T z <= 0

has the multipliers

    argmin_{y >= 0}  1/2 y^T S y + (c - a g)^T y,        S = cov(g, g),  c = cov(g, f)

because covariances under the belief are inner products of gradients in its frame. This is a least-squares problem in
as many unknowns as there are constraints. With d the deviation of the Lagrangian f + y^T g over the evaluations,

    a = sqrt(2 / n) max(d, FLOOR deviation of f),        w_i = PENALTY a / S_ii

d is the curvature if the belief is at the minimum of the Lagrangian, and its slope if it is far from it. So neither
the scale of f nor that of any g_i matters. Where the linearised problem has no solution, as when few evaluations are
known, y would grow without bound, and a with it: y_i is at most LARGEST deviation of f / deviation of g_i.
An equality h = 0 is the pair h <= 0, -h <= 0.

Bounds that must hold are constraints, too, and the last ones: f is evaluated at the nearest point of the box. Beyond a
bound, by r > 0, it is taken as if it went on with the slope -y that it has at a solution on the bound. Together with
y r + w/2 r^2 this is f at the bound plus w/2 r^2, and the merit is smooth across it.

Reference: the merit is that of PyCMA (Dufosse & Hansen, 2021), which adapts y and w by g at the best candidate.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls

from cones.checks import check_array, check_shape
from cones.component import Storable
from cones.errors import InputError
from cones.types import Matrix, Vector

__all__ = ["Lagrangian", "Told", "checked_rows", "split", "told_from", "violations_of"]

FLOOR, PENALTY, RIDGE, LARGEST = 0.003, 1.0, 1e-6, 10.0
# How fast the multipliers, and the logarithms of the penalties, follow their estimates.
MULTIPLIER_RATE, PENALTY_RATE = 0.3, 0.2
# The estimates use two populations, or this many times n + 2 evaluations, if these are not more than LARGEST_WINDOW.
WINDOW, LARGEST_WINDOW = 6, 500


@dataclass(frozen=True)
class Lagrangian(Storable):
    """The merit, and what it is learnt from.

    Values have one row per candidate: its loss, and then its constraints.

    Attributes:
        multipliers, penalties: y and w, one per constraint. The penalties are 0 before the first evaluation.
        latest: the latest finite values, oldest first, at the points that were evaluated.
        bounds: how many of the constraints, the last ones, are bounds.
    """

    multipliers: Vector
    penalties: Vector
    latest: Matrix
    bounds: int = 0

    @classmethod
    def start(cls, count: int, bounds: int = 0) -> Self:
        """Before the first evaluation, for a number of constraints and of bounds."""
        size = count + bounds
        return cls(np.zeros(size), np.zeros(size), np.empty((0, 1 + size)), bounds)

    @property
    def count(self) -> int:
        """The number of constraints that are not bounds."""
        return self.multipliers.size - self.bounds

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Self:
        found = cls(**parts)
        count = found.multipliers.size
        check_shape("penalties", found.penalties, (count,))
        check_shape("latest", found.latest, (len(found.latest), 1 + count))
        if not ((found.multipliers >= 0.0).all() and (found.penalties >= 0.0).all()):
            raise InputError("multipliers, penalties: expected numbers of at least 0, got others")
        if not 0 <= found.bounds <= count:
            raise InputError(f"bounds: expected at most {count}, got {found.bounds}")
        return found

    def merits(self, values: Matrix) -> Vector:
        """The merit of each row; NaN where a value is."""
        losses, constraints = values[:, 0], values[:, 1:]
        y, w = self.multipliers, self.penalties
        raised = np.maximum(y + w * constraints, 0.0)
        terms = np.where(w > 0.0, (raised**2 - y**2) / (2.0 * np.where(w > 0.0, w, 1.0)), 0.0)
        if self.bounds:
            beyond = np.maximum(constraints[:, self.count :], 0.0)
            terms[:, self.count :] -= y[self.count :] * beyond
        return np.asarray(losses + terms.sum(axis=1))

    def learnt(self, values: Matrix, dim: int, typical: NDArray[np.bool_] | None = None) -> Lagrangian:
        """The Lagrangian after a population in `dim` dimensions.

        `typical` are the candidates that differ from the mean in real numbers alone. If they are the majority, the
        others are left out: a jump of an integer or a category says nothing about slopes.
        """
        known = np.isfinite(values).all(axis=1)
        if typical is not None and 2 * np.count_nonzero(known & typical) > len(values):
            known &= typical
        finite = values[known]
        here = finite[:, 1:].mean(axis=0) if len(finite) else self.multipliers
        if self.bounds:
            finite = np.column_stack([finite[:, : 1 + self.count], np.minimum(finite[:, 1 + self.count :], 0.0)])
        window = max(2 * len(values), min(WINDOW * (dim + 2), LARGEST_WINDOW))
        latest = np.concatenate([self.latest, finite])[-window:]
        if not len(finite) or len(latest) < 2:
            return replace(self, latest=latest)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            multipliers, penalties = self._estimates(latest, here, dim)
            multipliers = self.multipliers + MULTIPLIER_RATE * (multipliers - self.multipliers)
            if self.penalties.all():
                penalties = self.penalties * (penalties / self.penalties) ** PENALTY_RATE
        if not (np.isfinite(multipliers).all() and np.isfinite(penalties).all() and penalties.all()):
            return replace(self, latest=latest)
        return Lagrangian(multipliers, penalties, latest, self.bounds)

    def _estimates(self, latest: Matrix, here: Vector, dim: int) -> tuple[Vector, Vector]:
        """Multipliers and penalties from the latest values; `here` are the constraints at the mean."""
        losses, constraints = latest[:, 0] - latest[:, 0].mean(), latest[:, 1:]
        scale = constraints.std(axis=0)
        largest = np.abs(constraints).max(axis=0)
        scale = np.where(scale > 1e-14 * largest, scale, np.where(largest > 0.0, largest, 1.0))
        centred = (constraints - constraints.mean(axis=0)) / scale
        y = self.multipliers * scale
        cost = _cost(losses, centred @ y, dim)
        gram = centred.T @ centred / len(losses) + RIDGE * np.eye(y.size)
        slope = centred.T @ losses / len(losses) - cost * here / scale
        if not np.isfinite(slope).all():
            return self.multipliers, self.penalties
        root = np.linalg.cholesky(gram)
        unit = float(np.abs(slope).max()) or 1.0  # keeps the solver within the range of floats
        with suppress(RuntimeError):  # too many iterations: the multipliers stay as they are
            y = unit * nnls(root.T, -np.linalg.solve(root, slope / unit))[0]
            y = np.minimum(y, LARGEST * float(losses.std()))
        mixed = self.multipliers * scale + MULTIPLIER_RATE * (y - self.multipliers * scale)
        return y / scale, PENALTY * _cost(losses, centred @ mixed, dim) / scale**2


class Told(NamedTuple):
    """The values of a population with constraints, and the merits that follow from them."""

    values: Matrix
    lagrangian: Lagrangian

    @property
    def losses(self) -> Vector:
        return self.values[:, 0]

    def violations(self) -> Vector:
        return violations_of(self.values[:, 1 : 1 + self.lagrangian.count])

    def merits(self) -> Vector:
        """The merits of the population, read-only."""
        with np.errstate(over="ignore", invalid="ignore"):
            merits = self.lagrangian.merits(self.values)
        merits.flags.writeable = False
        return merits


def checked_rows(constraints: ArrayLike | None, count: int, known: Lagrangian | None, begun: bool) -> Matrix | None:
    """Told constraints of `count` candidates as a matrix; None if there are none, now and in `known`."""
    if constraints is None:
        if known is not None:
            raise InputError(f"constraints: expected {known.count} numbers per candidate, got none")
        return None
    if known is None and begun:
        raise InputError("constraints: expected none, as in the earlier iterations of the run, got some")
    rows = check_array("constraints", constraints)
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or len(rows) != count or not rows.shape[1]:
        raise InputError(f"constraints: expected {count} rows of numbers, one per candidate, got shape {rows.shape}")
    if known is not None and rows.shape[1] != known.count:
        raise InputError(f"constraints: expected {known.count} numbers per candidate, as before, got {rows.shape[1]}")
    return rows


def told_from(
    losses: Vector,
    constraints: Matrix,
    beyond: Matrix,
    known: Lagrangian,
    dim: int,
    typical: NDArray[np.bool_] | None = None,
) -> Told:
    """What was told, read-only. A loss is NaN where a constraint is; `beyond` are bounds; see `Lagrangian.learnt`."""
    losses = np.where(np.isnan(constraints).any(axis=1), math.nan, losses)
    values = np.column_stack([losses, constraints, beyond])
    values.flags.writeable = False
    return Told(values, known.learnt(values, dim, typical))


def _cost(losses: Vector, terms: Vector, dim: int) -> float:
    """a; 1 if all losses are equal, where any number will do."""
    return math.sqrt(2.0 / dim) * max(float((losses + terms).std()), FLOOR * float(losses.std())) or 1.0


def split(values: Any) -> tuple[Vector, Matrix | None]:
    """Losses and constraints from what an evaluator returns: losses, or a row of both per candidate."""
    return (values, None) if values.ndim == 1 else (values[:, 0], values[:, 1:])


def violations_of(constraints: Matrix) -> Vector:
    """The largest violation of each row; 0 if it is feasible, infinite if a constraint is NaN."""
    worst = np.maximum(constraints, 0.0).max(axis=1, initial=0.0)
    return np.where(np.isnan(worst), math.inf, worst)
