"""Optional dependencies, and the command that installs them.

The command names the packages themselves and not `cones[extra]`: it works wherever cones was installed from.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
from importlib.metadata import PackageNotFoundError, requires

from cones.errors import MissingExtraError

__all__ = ["install_command", "require_extra"]


def require_extra(package: str, extra: str, user: str, hint: str = "") -> None:
    """Raise a `MissingExtraError` unless the package is installed.

    Args:
        package: its import name.
        extra: the extra of cones that it belongs to.
        user: what needs it; the start of the message.
        hint: an alternative; the end of the message.
    """
    if importlib.util.find_spec(package) is None:
        raise MissingExtraError(
            f"{user} needs the package {package}, which is not installed; run: {install_command(extra, package)}{hint}"
        ) from None


def install_command(extra: str, package: str) -> str:
    """The shell command that installs the packages of an extra; of one that is unknown here, the package alone."""
    return f"pip install {shlex.join(_requirements(extra) or [package])}"


def _requirements(extra: str) -> list[str]:
    """What cones declares for an extra, such as matplotlib>=3.8; empty if cones runs without being installed."""
    try:
        declared = requires("cones") or []
    except PackageNotFoundError:
        return []
    found: dict[str, None] = {}  # in order, each once
    for line in declared:
        requirement, _, marker = (part.strip() for part in line.partition(";"))
        if not re.fullmatch(rf"""extra == ['"]{re.escape(extra)}['"]""", marker):
            continue
        if own := re.match(r"cones\[(.*)\]", requirement):  # some build tools do not resolve these
            found |= {name: None for other in own[1].split(",") for name in _requirements(other.strip())}
        else:
            found[requirement] = None
    return list(found)
