"""The objective of `cones minimize`: a Python function or a program."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

from cones.checks import check_integer, check_positive
from cones.cli.command import CommandObjective
from cones.component import imported
from cones.errors import InputError
from cones.kernels.threads import core_count

__all__ = ["objective_from"]


def objective_from(
    options: argparse.Namespace, stack: ExitStack
) -> tuple[Callable[..., Any], Any, Callable[[], dict[str, Any]] | None]:
    """The function, the workers, and, for a program, a function that reports failures."""
    if (options.function is None) == (options.command is None):
        raise InputError("objective: expected either MODULE:FUNCTION or --command")
    if isinstance(options.workers, int) and options.workers != -1:
        check_integer("--workers", options.workers, 1)
    if options.command is None:
        return _imported(options.function), options.workers or 1, None
    if options.vectorized:
        raise InputError("--vectorized: expected with MODULE:FUNCTION only, got --command")
    if isinstance(options.workers, str):
        raise InputError(f"--workers: expected a number with --command, got {options.workers}")
    if options.retries is not None:
        raise InputError("--retries: expected with MODULE:FUNCTION only, got --command, whose failures count as NaN")
    timeout = None if options.timeout is None else check_positive("--timeout", options.timeout)
    count = options.workers if options.workers and options.workers > 0 else core_count()
    command = CommandObjective(options.command, timeout)
    pool = stack.enter_context(ThreadPoolExecutor(count))
    stack.callback(command.kill)  # before the pool waits for its threads
    return command, pool, command.failures


def _imported(path: str) -> Callable[..., Any]:
    thing = imported(path, "what to minimise")
    if not callable(thing):
        raise InputError(f"{path}: expected a function, got {type(thing).__name__}")
    return thing  # type: ignore[no-any-return]
