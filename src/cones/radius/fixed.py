"""One radius for all iterations."""

from __future__ import annotations

from dataclasses import dataclass

from cones.checks import check_non_negative, store
from cones.radius.control import Radius, RadiusControl, Signal

__all__ = ["Fixed"]


@dataclass(frozen=True)
class Fixed(RadiusControl[None]):
    """The same radius always.

    Args:
        value: the radius; 0 keeps the ball's part of the belief as it is.
    """

    value: float

    def __post_init__(self) -> None:
        store(self, value=check_non_negative("value", self.value))

    def start(self, signal: Signal) -> None:
        return None

    def radius(self, memory: None, signal: Signal) -> tuple[Radius, None]:
        return Radius(self.value), None
