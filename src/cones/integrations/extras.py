"""What a bridge says when the library on its other side is not installed."""

from __future__ import annotations

from cones.errors import MissingExtraError

__all__ = ["missing"]


def missing(extra: str, package: str, error: ImportError) -> ImportError:
    """The error to raise for an import that failed: how to install the package, if it is not there at all."""
    if error.name is None or error.name.partition(".")[0] != package:
        return error  # it is installed, and something that it imports is not as it should be
    return MissingExtraError(f'cones.integrations needs {package} for this; run: pip install "cones[{extra}]"')
