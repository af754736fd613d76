"""The errors that cones raises. Bad input raises; a solver failure is a status."""

from __future__ import annotations

__all__ = ["CheckpointError", "ConesError", "InputError", "MissingExtraError", "NotStorableError", "StateError"]


class ConesError(Exception):
    """Base class of all errors that cones raises."""


class InputError(ConesError, ValueError):
    """An invalid argument. The message names it, what was expected and what was received."""


class StateError(ConesError, RuntimeError):
    """A call that the state of the object does not allow, such as `tell` before `ask`."""


class CheckpointError(ConesError, OSError):
    """A checkpoint that cannot be written, or a file that is not a usable checkpoint."""


class NotStorableError(CheckpointError):
    """A component's settings or state that a checkpoint cannot hold."""


class MissingExtraError(ConesError, ImportError):
    """An optional dependency or its licence is missing. The message says how to install it."""
