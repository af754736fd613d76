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

__all__ = ["Box", "box_from", "initial_deviations"]


@dataclass(frozen=True)
class Box(Storable):
    """lower <= x <= upper, elementwise; either bound may be infinite."""

    lower: Vector
    upper: Vector

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Self:
        box = cls(**parts)
        if box.lower.ndim != 1 or box.lower.shape != box.upper.shape or not (box.lower <= box.upper).all():
            raise InputError(f"bounds: expected low <= high, got {box.lower!r:.60} and {box.upper!r:.60}")
        return box

    def contains(self, x: Vector) -> bool:
        return bool((x >= self.lower).all() and (x <= self.upper).all())

    def clip(self, x: Vector) -> Vector:
        """The nearest point of the box."""
        return np.clip(x, self.lower, self.upper)

    def reflect(self, candidates: Matrix) -> Matrix:
        """Candidates reflected at the bounds until they are inside; those inside are unchanged.

        Reflection keeps the loss continuous across a bound. Unlike clipping, it does not make the loss flat outside,
        so the gradient stays informative when the belief extends beyond a bound.
        """
        lower, upper = self.lower, self.upper
        if bool((candidates >= lower).all()) and bool((candidates <= upper).all()):
            return candidates
        width = upper - lower
        with np.errstate(invalid="ignore", over="ignore"):  # all cases are computed, then one is selected
            phase = np.mod(candidates - lower, 2.0 * width)
            inside = lower + (width - np.abs(phase - width))  # both sides finite
            inside = np.where(np.isposinf(upper), lower + np.abs(candidates - lower), inside)
            inside = np.where(np.isneginf(lower), upper - np.abs(upper - candidates), inside)
        inside = np.where(width == 0.0, lower, inside)
        inside = np.where((candidates >= lower) & (candidates <= upper), candidates, inside)
        inside = np.clip(inside, lower, upper).astype(candidates.dtype)  # rounding may cross a bound
        if inside.dtype != lower.dtype:
            inside = np.where(inside < lower, np.nextafter(inside, np.inf, dtype=inside.dtype), inside)
            inside = np.where(inside > upper, np.nextafter(inside, -np.inf, dtype=inside.dtype), inside)
        return inside


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


def initial_deviations(size: int, sigma0: ArrayLike | None, box: Box | None) -> Vector:
    """Initial standard deviations; by default a quarter of the width between two finite bounds, 1 elsewhere."""
    if sigma0 is None:
        width = np.full(size, np.inf) if box is None else box.upper - box.lower
        return np.where(np.isfinite(width) & (width > 0.0), 0.25 * width, 1.0)
    deviations = check_vector("sigma0", sigma0, size, positive=True)
    if deviations.min() < 1e-140 or deviations.max() > 1e140:
        raise InputError(
            f"sigma0: expected numbers between 1e-140 and 1e140, got {deviations.min():g} to {deviations.max():g}"
        )
    return deviations
