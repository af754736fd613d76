"""Restarts: what a run does when a descent has ended and budget is left."""

from cones.restarts.axes import AxisSearch
from cones.restarts.bipop import Bipop
from cones.restarts.growing import Growing
from cones.restarts.policy import DescentEnd, NextDescent, Restarts, restarts_from
from cones.restarts.refining import Refining

__all__ = ["AxisSearch", "Bipop", "DescentEnd", "Growing", "NextDescent", "Refining", "Restarts", "restarts_from"]
