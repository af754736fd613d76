"""The progress of a run: its state, its history and its stop criteria."""

from cones.progress.history import COLUMNS, RESERVED, History
from cones.progress.state import Outcome, State

__all__ = ["COLUMNS", "RESERVED", "History", "Outcome", "State"]
