"""Optional dependencies."""

from __future__ import annotations

import importlib.util

from cones.errors import MissingExtraError

__all__ = ["require_extra"]


def require_extra(package: str, extra: str, user: str, hint: str = "") -> None:
    """Raise a `MissingExtraError` unless the package is installed.

    Args:
        package: its import name.
        extra: the extra of cones that installs it.
        user: what needs it; the start of the message.
        hint: an alternative; the end of the message.
    """
    if importlib.util.find_spec(package) is None:
        raise MissingExtraError(
            f"{user} needs the package {package}, which is not installed; run: pip install 'cones[{extra}]'{hint}"
        ) from None
