"""The progress of a run: its state, its history and its stop criteria."""

from cones.progress.history import COLUMNS, RESERVED, History
from cones.progress.state import CATOL, Descent, Earlier, Outcome, State

__all__ = ["CATOL", "COLUMNS", "RESERVED", "Descent", "Earlier", "History", "Outcome", "State"]
