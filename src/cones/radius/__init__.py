"""Radius controls: statistics of an iteration's estimate in, the radius of a ball out."""

from cones.radius.control import EstimateStats, Radius, RadiusControl
from cones.radius.fixed import Fixed
from cones.radius.path_length import DirectionPath, PathLength, PathState
from cones.radius.signal_ratio import SignalRatio
from cones.radius.smoothing import Smoothing, SmoothingState

__all__ = [
    "DirectionPath",
    "EstimateStats",
    "Fixed",
    "PathLength",
    "PathState",
    "Radius",
    "RadiusControl",
    "SignalRatio",
    "Smoothing",
    "SmoothingState",
]
