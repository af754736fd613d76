"""A constant radius."""

from __future__ import annotations

from dataclasses import dataclass

from cones.checks import check_non_negative, store
from cones.component import setting
from cones.radius.control import EstimateStats, Radius, RadiusControl

__all__ = ["Fixed"]


@dataclass(frozen=True)
class Fixed(RadiusControl[None]):
    """The same radius in every iteration."""

    name = "fixed"

    value: float = setting(sentence="The radius; 0 keeps this part of the belief constant.")

    def __post_init__(self) -> None:
        store(self, value=check_non_negative("value", self.value))

    def start(self, stats: EstimateStats) -> None:
        return None

    def radius(self, state: None, stats: EstimateStats) -> tuple[Radius, None]:
        return Radius(self.value), None
