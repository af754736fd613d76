"""Box bounds: candidates outside the box are reflected into it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from cones.checks import check_array, check_vector
from cones.component import Storable
from cones.errors import InputError
from cones.types import Matrix, Vector

__all__ = ["Box", "box_from", "check_deviations", "check_start", "initial_deviations"]

# The range of initial standard deviations, by dtype.
DEVIATIONS = {"float64": (1e-140, 1e140), "float32": (1e-16, 1e16)}


@dataclass(frozen=True)
class Box(Storable):
    """lower <= x <= upper, elementwise; either bound may be infinite.

    Attributes:
        whole: which coordinates are integers; None if none is. Candidates are rounded to them. 0: a real number,
            1: an integer, 2: the logarithm of a positive integer.
    """

    lower: Vector
    upper: Vector
    whole: Vector | None = None

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Self:
        box = cls(**parts)
        if box.whole is not None and (box.whole.shape != box.lower.shape or not np.isin(box.whole, (0, 1, 2)).all()):
            raise InputError(f"bounds: expected 0, 1 or 2 for each coordinate, got {box.whole!r:.60}")
        if box.lower.ndim != 1 or box.lower.shape != box.upper.shape or not (box.lower <= box.upper).all():
            raise InputError(f"bounds: expected low <= high, got {box.lower!r:.60} and {box.upper!r:.60}")
        return box

    def part(self, columns: slice) -> Box:
        """The box of some coordinates."""
        return Box(self.lower[columns], self.upper[columns], None if self.whole is None else self.whole[columns])

    def contains(self, x: Vector) -> bool:
        return bool((x >= self.lower).all() and (x <= self.upper).all())

    def clip(self, x: Vector) -> Vector:
        """The nearest point of the box."""
        return np.clip(x, self.lower, self.upper)

    def beyond(self, x: Matrix) -> Matrix:
        """How far each row is beyond each finite bound, negative inside: lower - x, and x - upper."""
        low, high = np.isfinite(self.lower), np.isfinite(self.upper)
        return np.concatenate([(self.lower - x)[:, low], (x - self.upper)[:, high]], axis=1)

    def reflect(self, candidates: Matrix) -> Matrix:
        """Candidates reflected at the bounds until they are inside, then rounded; those inside are unchanged.

        Reflection keeps the loss continuous across a bound. Unlike clipping, it does not make the loss flat outside,
        so the gradient stays informative when the belief extends beyond a bound.
        """
        return self._rounded(self._reflected(candidates))

    def _rounded(self, candidates: Matrix) -> Matrix:
        """Integer coordinates rounded to the nearest integer inside."""
        if self.whole is None or not self.whole.any():
            return candidates
        rounded = np.array(candidates)
        for log in (False, True):
            which = np.flatnonzero(self.whole == 1 + log)
            low, high, x = self.lower[which], self.upper[which], rounded[..., which]
            if log:
                low, high, x = np.exp(low), np.exp(high), np.exp(x)
            x = np.clip(np.floor(x + 0.5), np.ceil(low - 1e-9), np.floor(high + 1e-9))
            rounded[..., which] = np.log(x) if log else x
        return rounded

    def cells(self, x: Vector) -> Vector:
        """The distance to the next integer around a point, per coordinate; 0 for real numbers."""
        if self.whole is None:
            return np.zeros_like(x)
        with np.errstate(over="ignore"):
            logs = np.log1p(np.exp(-np.maximum(x, 0.0)))
        return np.select([self.whole == 1, self.whole == 2], [np.ones_like(x), logs], 0.0)

    def _reflected(self, candidates: Matrix) -> Matrix:
        if bool((candidates >= self.lower).all()) and bool((candidates <= self.upper).all()):
            return candidates
        lower, upper, x = (np.asarray(array, np.float64) for array in (self.lower, self.upper, candidates))
        with np.errstate(invalid="ignore", over="ignore"):  # all cases are computed, then one is selected
            width = upper - lower
            phase = np.mod(x - lower, 2.0 * width)
            inside = lower + (width - np.abs(phase - width))  # both sides finite
            inside = np.where(np.isposinf(upper), lower + np.abs(x - lower), inside)
            inside = np.where(np.isneginf(lower), upper - np.abs(upper - x), inside)
        inside = np.where(width == 0.0, lower, inside)
        inside = np.where((x >= lower) & (x <= upper), x, inside)
        inside = np.where(np.isfinite(inside), inside, x)  # a width beyond floats: the nearest bound
        return np.clip(inside, lower, upper).astype(candidates.dtype)  # rounding may cross a bound

    def as_type(self, dtype: str) -> Box:
        """The box with bounds that are numbers of a dtype: the nearest ones inside, or at all if none is inside."""
        if self.lower.dtype == dtype:
            return self
        with np.errstate(over="ignore"):
            lower, upper, nearest = (side.astype(dtype) for side in (self.lower, self.upper, self.lower))
        lower = np.where(lower < self.lower, np.nextafter(lower, np.inf, dtype=lower.dtype), lower)
        upper = np.where(upper > self.upper, np.nextafter(upper, -np.inf, dtype=upper.dtype), upper)
        none = lower > upper
        return Box(np.where(none, nearest, lower), np.where(none, nearest, upper), self.whole)


def box_from(bounds: Any, x0: Vector) -> Box | None:
    """A box from what SciPy accepts: a `scipy.optimize.Bounds`, or a (low, high) pair per coordinate."""
    if bounds is None:
        return None
    size = x0.size
    sides: list[Any]
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):
        sides = [bounds.lb, bounds.ub]
    else:
        try:
            pairs = [(low, high) for low, high in bounds]
        except (TypeError, ValueError):
            raise InputError(
                "bounds: expected a scipy.optimize.Bounds or a sequence of (low, high) pairs, "
                f"got {type(bounds).__name__}"
            ) from None
        if len(pairs) != size:
            raise InputError(f"bounds: expected {size} pairs, one per coordinate of x0, got {len(pairs)}")
        sides = [
            [-np.inf if low is None else low for low, _ in pairs],
            [np.inf if high is None else high for _, high in pairs],
        ]
    lower, upper = (check_array("bounds", side) for side in sides)
    for side in (lower, upper):
        if side.shape not in ((), (1,), (size,)):
            raise InputError(f"bounds: expected sides that fit the {size} coordinates of x0, got shape {side.shape}")
    lower, upper = (np.broadcast_to(side, (size,)).copy() for side in (lower, upper))
    bad = ~(lower <= upper) | (lower == np.inf) | (upper == -np.inf)
    if bad.any():
        index = int(bad.argmax())
        raise InputError(f"bounds: expected low <= high, got ({lower[index]}, {upper[index]}) for coordinate {index}")
    outside = (x0 < lower) | (x0 > upper)
    if outside.any():
        index = int(outside.argmax())
        raise InputError(
            f"x0: expected a start within bounds, got {x0[index]} outside ({lower[index]}, {upper[index]}) "
            f"at coordinate {index}"
        )
    return Box(lower, upper)


def initial_deviations(size: int, sigma0: ArrayLike | None, box: Box | None, dtype: str = "float64") -> Vector:
    """Initial standard deviations; by default a quarter of the width between two finite bounds, 1 elsewhere."""
    if sigma0 is not None:
        deviations = check_vector("sigma0", sigma0, size, positive=True)
        check_deviations("sigma0", deviations, dtype)
        return deviations
    if box is None:
        return np.ones(size)
    with np.errstate(over="ignore"):
        width = np.asarray(box.upper, np.float64) - box.lower
    return np.clip(np.where(np.isfinite(width) & (width > 0.0), 0.25 * width, 1.0), *DEVIATIONS[dtype])


def check_deviations(name: str, deviations: Vector, dtype: str) -> None:
    """Refuse standard deviations whose squares leave the range of a dtype."""
    (least, most), low, high = DEVIATIONS[dtype], float(deviations.min()), float(deviations.max())
    if not (least <= low and high <= most):
        raise InputError(f"{name}: expected numbers between {least:g} and {most:g} as {dtype}, got {low:g} to {high:g}")


def check_start(x0: Vector, dtype: str = "float64") -> None:
    """Refuse a start so large that candidates around it leave the range of a dtype."""
    most = 0.5 * float(np.finfo(dtype).max)
    if max(-float(x0.min()), float(x0.max())) > most:
        raise InputError(f"x0: expected numbers of at most {most:.3g} as {dtype}, got {x0.min():g} to {x0.max():g}")
