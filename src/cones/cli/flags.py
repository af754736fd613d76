"""Flags of the method, which several commands share, from the declaration of its settings."""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import Any

from cones.component import is_own
from cones.methods import METHODS, sentence_of

__all__ = [
    "COMPONENT_FLAGS",
    "METHOD_FLAGS",
    "add_method_flags",
    "allowed_by",
    "flags_given",
    "method_settings",
    "radius",
    "workers",
]

WITH_ADAM = "With CoNES it means --radius paper, unless a number is given."


def radius(text: str) -> float | str:
    """A radius as a number or a name; the method checks the name."""
    with suppress(ValueError):
        return float(text)
    return text


def restarts(text: str) -> int | str:
    """A number of restarts, or a policy; the method checks it."""
    with suppress(ValueError):
        return int(text)
    return text


def workers(text: str) -> int | str:
    """A number of workers, or an address or name."""
    with suppress(ValueError):
        return int(text)
    return text


# Flags that choose a component: NAME, NAME,SETTING=VALUE,... or MODULE:CLASS.
COMPONENT_FLAGS = ("belief", "estimator", "step", "solver", "divergence", "optimizer", "shaping")
TYPES: dict[str, Any] = {"popsize": int, "radius": radius, "restarts": restarts, "chart": str}
METHOD_FLAGS = (*TYPES, *COMPONENT_FLAGS)
RATES = {
    "learning_rate": f"Learning rate of Adam for the mean, 0.1 by default. {WITH_ADAM}",
    "variance_learning_rate": f"Learning rate of Adam for the log-variance. {WITH_ADAM}",
}


def add_method_flags(group: Any, **defaults: str) -> None:
    """Add the flags of the method to a parser or group; `defaults` adds sentences to help texts, by flag."""
    for name in METHOD_FLAGS:
        text = sentence_of(name) + (f" {defaults[name]}" if name in defaults else "")
        metavar = "NAME" if TYPES.get(name, str) is str else "R" if name == "radius" else "N"
        group.add_argument(flag(name), metavar=metavar, type=TYPES.get(name, str), help=text.replace("%", "%%"))
    for name, text in RATES.items():
        group.add_argument(flag(name), metavar="R", type=float, help=f"{text} {defaults.get(name, '')}".rstrip())
    group.add_argument(
        "--independent",
        action="store_true",
        help="Independent candidates, never antithetic pairs. By default ES, NES and the paper's method take pairs, "
        "and CoNES chooses.",
    )


def flags_given(options: argparse.Namespace) -> dict[str, Any]:
    """What the flags of the method give, as the keys of an experiment file."""
    said = {name: getattr(options, name) for name in (*METHOD_FLAGS, *RATES) if getattr(options, name) is not None}
    return {**said, "antithetic": False} if options.independent else said


def method_settings(options: argparse.Namespace) -> dict[str, Any]:
    """The settings of the method that the flags give."""
    said = flags_given(options)
    rates = {name: said.pop(name) for name in RATES if name in said}
    if rates:
        said["optimizer"] = {"name": said.get("optimizer", "adam"), **rates}
    return said


def allowed_by(options: argparse.Namespace) -> list[str]:
    """The custom components in the flags, which a checkpoint may contain."""
    names = (*COMPONENT_FLAGS, "restarts")
    texts = [str(getattr(options, name, None) or "") for name in names] + list(getattr(options, "allow", None) or ())
    words = [part.rpartition("=")[2] for text in texts for part in text.split(",")]
    return [word for word in words if is_own(word)]


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def add_method(group: Any, default: str | None = None) -> None:
    group.add_argument("--method", choices=list(METHODS), default=default, help="default: cones")
