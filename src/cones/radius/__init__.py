"""Controls of the radius of a KL ball: what an iteration says in, the radius of its step out."""

from cones.radius.control import RadiusControl, Signal
from cones.radius.fixed import Fixed
from cones.radius.path_length import DirectionPath, PathLength, PathMemory
from cones.radius.signal_ratio import SignalRatio

__all__ = ["DirectionPath", "Fixed", "PathLength", "PathMemory", "RadiusControl", "Signal", "SignalRatio"]
