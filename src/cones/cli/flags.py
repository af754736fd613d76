"""Flags that several commands share."""

from __future__ import annotations

from contextlib import suppress

__all__ = ["RADIUS_HELP", "WITH_ADAM", "radius"]

RADIUS_HELP = (
    "CoNES: adaptive (nothing to tune), paper (one KL ball of radius sqrt(2 n), then Adam), or the radius of that ball"
)
WITH_ADAM = "with CoNES it means --radius paper, unless a number is given"


def radius(text: str) -> float | str:
    """A radius by name or as a number; what is neither is named by the method itself."""
    with suppress(ValueError):
        return float(text)
    return text
