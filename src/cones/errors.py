"""The errors that cones raises. Bad input is an exception; solver trouble is a value."""

from __future__ import annotations

__all__ = ["CheckpointError", "ConesError", "InputError", "MissingExtraError", "StateError"]


class ConesError(Exception):
    """Base of all errors raised by cones."""


class InputError(ConesError, ValueError):
    """An argument is not what it must be. The message names it, what was expected and what came."""


class StateError(ConesError, RuntimeError):
    """A call that does not fit the state of the object, such as `tell` before `ask`."""


class CheckpointError(ConesError, OSError):
    """A checkpoint that cannot be written, or a file that is not a usable checkpoint."""


class MissingExtraError(ConesError, ImportError):
    """An optional dependency, or its licence, is missing. The message says how to get it."""
