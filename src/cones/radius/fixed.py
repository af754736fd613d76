"""One radius for all iterations."""

from __future__ import annotations

from dataclasses import dataclass

from cones.checks import check_non_negative, store
from cones.component import setting
from cones.radius.control import EstimateStats, Radius, RadiusControl

__all__ = ["Fixed"]


@dataclass(frozen=True)
class Fixed(RadiusControl[None]):
    """The same radius always."""

    name = "fixed"

    value: float = setting(sentence="The radius; 0 keeps the ball's part of the belief as it is.")

    def __post_init__(self) -> None:
        store(self, value=check_non_negative("value", self.value))

    def start(self, stats: EstimateStats) -> None:
        return None

    def radius(self, state: None, stats: EstimateStats) -> tuple[Radius, None]:
        return Radius(self.value), None
