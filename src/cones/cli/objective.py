"""The objective of `cones minimize`: a Python function or a program."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from contextlib import ExitStack
from tempfile import TemporaryDirectory
from typing import Any

from cones.checks import check_integer
from cones.cli.command import CommandObjective
from cones.component import imported
from cones.errors import InputError
from cones.evaluate import PoolEngine
from cones.kernels.threads import core_count

__all__ = ["objective_from"]


def objective_from(options: argparse.Namespace, stack: ExitStack) -> tuple[Callable[..., Any], Any]:
    """The function, and the workers."""
    if (options.function is None) == (options.command is None):
        got = "neither" if options.command is None else "both"
        raise InputError(f"what to minimise: expected MODULE:FUNCTION or --command, got {got}")
    if isinstance(options.workers, int) and options.workers != -1:
        check_integer("--workers", options.workers, 1)
    if options.command is None:
        return _imported(options.function), options.workers or 1
    if options.vectorized:
        raise InputError("--vectorized: expected with MODULE:FUNCTION only, got --command")
    if isinstance(options.workers, str):
        raise InputError(f"--workers: expected a number with --command, got {options.workers}")
    command = CommandObjective(options.command, stack.enter_context(TemporaryDirectory(prefix="cones-")))
    workers = PoolEngine(options.workers if options.workers and options.workers > 0 else core_count())
    workers.slow = -math.inf  # each program is a task of its own
    return command, workers


def _imported(path: str) -> Callable[..., Any]:
    thing = imported(path, "what to minimise")
    if not callable(thing):
        raise InputError(f"{path}: expected a function, got {type(thing).__name__}")
    return thing  # type: ignore[no-any-return]
