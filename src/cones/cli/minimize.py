"""`cones minimize`: a Python function, or any program that reads a vector and prints a number."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

import cones
from cones.checks import check_integer, check_positive, check_vector
from cones.cli.command import CommandObjective
from cones.cli.flags import RADIUS_HELP, radius
from cones.errors import InputError
from cones.experiments.records import rounded
from cones.methods import METHODS
from cones.pipeline import Pipeline
from cones.shaping import SHAPINGS
from cones.threads import core_count
from cones.types import Vector

__all__ = ["add_to"]

# Flags that are for the methods of this library.
NOT_OF_PEERS = ("radius", "learning_rate", "variance_learning_rate", "belief", "shaping", "independent", "restarts")

# What flags have set in a strategy that a checkpoint keeps.
SET_BY: dict[str, Callable[[Any], Any]] = {
    "radius": lambda es: es.refinement,
    "learning_rate": lambda es: getattr(es.optimizer, "learning_rate", None),
    "variance_learning_rate": lambda es: getattr(es.optimizer, "variance_learning_rate", None),
    "belief": lambda es: type(es.state.belief),
    "shaping": lambda es: es.shaping,
    "independent": lambda es: (es.pairing, type(es.noise)),
    "restarts": lambda es: es.restarts,
    "seed": lambda es: es.noise.seed if isinstance(es, Pipeline) else es.seed,
    "bounds": lambda es: None if es.box is None else (es.box.lower.tolist(), es.box.upper.tolist()),
}

DESCRIPTION = """\
Minimise a Python function, or what a program prints.

  cones minimize package.module:function --dim 20
      function(x) takes a vector and returns a number. Modules of the current folder are found.

  cones minimize --command "./simulate --verbose {input}" --dim 8 --workers 4 --timeout 600
      {input} is the path of a file that holds the candidate as a JSON array of numbers. Without {input}
      the array comes on standard input. The last line that the program prints must be the loss.
      A candidate whose program fails, prints no number or takes longer than --timeout counts as NaN,
      which ranks worst; failures are counted and shown. When all candidates fail, the run stops.

The result is written as JSON to standard output, or, with the history of the run, to --out; `cones plot` draws
it. Progress goes to standard error. With --checkpoint FILE a run that was killed goes on with the same command
and --resume.
"""


def add_to(commands: Any, common: argparse.ArgumentParser) -> None:
    text = "minimise a Python function or a program's output"
    parser = commands.add_parser(
        "minimize",
        parents=[common],
        help=text,
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_argument_group("what to minimise")
    what.add_argument("function", nargs="?", metavar="MODULE:FUNCTION", help="a Python function")
    what.add_argument("--command", metavar="CMD", help="a program, with {input} for the file of the candidate")
    what.add_argument("--timeout", metavar="S", type=float, help="seconds a candidate may take")
    what.add_argument(
        "--retries", metavar="K", type=int, help="try a candidate that fails again so often before it counts as NaN"
    )
    what.add_argument(
        "--vectorized", action="store_true", help="the function takes a (k, n) array, a candidate per row"
    )
    start = parser.add_argument_group("where to start")
    start.add_argument("--x0", metavar="X", help="numbers separated by commas, or a JSON file with an array")
    start.add_argument("--dim", metavar="N", type=int, help="start from N zeros")
    start.add_argument(
        "--sigma0", metavar="S", type=float, help="initial standard deviation (default 1, or width/4 in bounds)"
    )
    start.add_argument(
        "--bounds", nargs=2, metavar=("LOW", "HIGH"), type=float, help="the same bounds for all coordinates"
    )
    how = parser.add_argument_group("how")
    how.add_argument("--method", choices=list(METHODS), help="default: cones")
    how.add_argument(
        "--popsize",
        metavar="N",
        type=int,
        help="candidates per iteration (default 4 + 3 sqrt(n), at most 100; CMA: 4 + 3 log n; others: 100)",
    )
    how.add_argument("--radius", metavar="R", type=radius, help=RADIUS_HELP)
    how.add_argument("--learning-rate", metavar="R", type=float, help="of Adam, for the mean (default 0.1)")
    how.add_argument("--variance-learning-rate", metavar="R", type=float, help="of Adam, for the log-variance")
    how.add_argument(
        "--belief",
        choices=["diagonal", "full"],
        help="covariance (default diagonal; adaptive CoNES: full up to 10 dimensions)",
    )
    how.add_argument("--shaping", choices=list(SHAPINGS), help="default centred_ranks; adaptive CoNES: normal_scores")
    how.add_argument("--independent", action="store_true", help="independent candidates, never antithetic pairs")
    how.add_argument(
        "--restarts", metavar="K", type=int, help="start anew so often, with twice the candidates, when a descent ends"
    )
    how.add_argument("--seed", metavar="K", type=int, help="makes the run repeatable")
    how.add_argument(
        "--workers",
        metavar="K",
        type=_workers,
        help="evaluations at a time (default 1; --command: one per core), -1 for one per core; for functions also "
        "ray, ray://HOST:PORT, or tcp://HOST:PORT of a Dask scheduler",
    )
    end = parser.add_argument_group("when to stop")
    for name, text in (
        ("maxfev", "evaluations"),
        ("maxiter", "iterations (1000 if no budget is given)"),
        ("maxtime", "seconds"),
        ("ftarget", "stop at this loss"),
        ("xtol", "tolerance on x"),
        ("ftol", "tolerance on the loss"),
    ):
        end.add_argument(f"--{name}", metavar="V", type=float, help=text)
    keep = parser.add_argument_group("what is kept")
    keep.add_argument("--out", metavar="FILE", help="write the result here instead of to standard output")
    keep.add_argument("--checkpoint", metavar="FILE", help="keep the run here as it goes")
    keep.add_argument("--checkpoint-every", metavar="K", type=int, help="iterations between checkpoints")
    keep.add_argument(
        "--resume", action="store_true", help="go on from --checkpoint if it exists, whatever --x0 and --sigma0 say"
    )
    keep.add_argument("--quiet", action="store_true", help="no progress")
    parser.set_defaults(call=run)


def run(options: argparse.Namespace) -> int:
    _check_files(options)
    _check_method(options, options.method)
    with ExitStack() as stack:
        fun, workers, failures = _objective(options, stack)
        result = _minimised(options, fun, workers)
    report = {
        "x": [float(v) for v in result.x],
        "fun": float(result.fun) if np.isfinite(result.fun) else None,
        **{name: result[name] for name in ("nfev", "nit", "success", "stop", "message")},
        "failures": failures() if failures else {"count": int(result.history["failures"].sum())},
    }
    text = json.dumps(report, indent=2) + "\n"
    try:
        if options.out:
            Path(options.out).write_text(_with_history(text, result))
        else:
            sys.stdout.write(text)
    except OSError as error:
        sys.stdout.write(text)
        print(f"cones: --out: {options.out} could not be written ({error.strerror})", file=sys.stderr)
        return 1
    count = report["failures"]["count"]
    if count:
        example = report["failures"].get("example", "")
        if result.failures:
            example = result.failures[-1]
        print(f"cones: {count} evaluations failed{f', the last: {example}' if example else ''}", file=sys.stderr)
    if result.stop == "interrupted":
        again = "; --resume goes on from the checkpoint" if options.checkpoint else ""
        print(f"cones: interrupted, this is the best so far{again}", file=sys.stderr)
        return 130
    if result.stop == "all_nan":
        print("cones: all candidates of an iteration failed; correct the function or the program", file=sys.stderr)
        return 1
    if result.stop == "diverged":
        print(f"cones: {result.message}", file=sys.stderr)
        return 1
    return 0


def _with_history(text: str, result: OptimizeResult) -> str:
    """The report with a line per column of the history, as `cones plot` reads it."""
    columns = {name: [rounded(value) for value in column] for name, column in result.history.items()}
    lines = ",\n".join(f'    "{name}": {json.dumps(column)}' for name, column in columns.items())
    return text.removesuffix("\n}\n") + ',\n  "history": {\n' + lines + "\n  }\n}\n"


def _check_files(options: argparse.Namespace) -> None:
    """What would go wrong with files at the end goes wrong before the start."""
    if options.out and not Path(options.out).absolute().parent.is_dir():
        raise InputError(f"--out: no folder {Path(options.out).absolute().parent} to write to")
    if options.resume and not options.checkpoint:
        raise InputError("--resume: expected together with --checkpoint, the file to go on from")
    if options.checkpoint and not options.resume and Path(options.checkpoint).exists():
        raise InputError(f"--checkpoint: {options.checkpoint} exists; --resume goes on from it, or move it away")


def _check_resumed(options: argparse.Namespace) -> None:
    """A checkpoint keeps start, method and settings; flags that say something else are refused.

    Where the run started it does not tell.
    """
    kept = cones.load(options.checkpoint)
    dim, method = kept.state.belief.dim, kept.method.lower()
    said = None if options.dim is None is options.x0 else _start(options).size
    if said is not None and said != dim:
        raise InputError(f"--resume: {options.checkpoint} has {dim} dimensions, got {said}")
    if options.method is not None and options.method != method:
        raise InputError(f"--resume: {options.checkpoint} is a run of {kept.method}, got --method {options.method}")
    _check_method(options, method)
    popsize = kept.popsize >> kept.state.restarts  # which double it
    if options.popsize is not None and options.popsize != popsize:
        raise InputError(f"--resume: {options.checkpoint} has a popsize of {popsize}, got {options.popsize}")
    given = [name for name in SET_BY if _is_given(options, name)]
    if not given:
        return
    start = np.full(dim, np.clip(0.0, *(options.bounds or (0.0, 0.0))))  # of a strategy that is not run
    described = METHODS[method](start, rng=options.seed, **_settings(options, dim))
    for name in given:
        if SET_BY[name](described) != SET_BY[name](kept):
            raise InputError(f"--resume: {options.checkpoint} was begun with another {_flag(name)}; leave it out")


def _is_given(options: argparse.Namespace, name: str) -> bool:
    value = getattr(options, name)
    return value is not None and value is not False


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _check_method(options: argparse.Namespace, method: str | None) -> None:
    """Flags that the method does not have."""
    lacks = {
        "cma": NOT_OF_PEERS,
        "sepcma": NOT_OF_PEERS,
        "es": ("radius",),
        "nes": ("radius",),
    }
    for name in lacks.get(method or "", ()):
        if _is_given(options, name):
            raise InputError(f"{_flag(name)}: expected with another method, got a run of {method}")


def _minimised(options: argparse.Namespace, fun: Callable[..., Any], workers: Any) -> OptimizeResult:
    limits = {name: getattr(options, name) for name in ("maxfev", "maxiter", "maxtime", "ftarget", "xtol", "ftol")}
    limits = {name: value for name, value in limits.items() if value is not None}
    # A program is ended by its own timeout.
    faults = {"timeout": options.timeout, "retries": options.retries} if options.command is None else {}
    if options.resume and Path(options.checkpoint).exists():
        _check_resumed(options)
        return cones.resume(
            options.checkpoint,
            fun,
            vectorized=options.vectorized or None,
            workers=workers,
            disp=not options.quiet,
            checkpoint_every=options.checkpoint_every,
            **faults,
            **limits,
        )
    x0 = _start(options)
    return cones.minimize(
        fun,
        x0,
        method=options.method or "cones",
        rng=options.seed,
        vectorized=options.vectorized,
        workers=workers,
        disp=not options.quiet,
        checkpoint=options.checkpoint,
        checkpoint_every=options.checkpoint_every,
        **faults,
        **_settings(options, x0.size),
        **limits,
    )


def _settings(options: argparse.Namespace, dim: int) -> dict[str, Any]:
    """What the flags say about the method."""
    settings: dict[str, Any] = {name: getattr(options, name) for name in ("popsize", "radius", "belief", "shaping")}
    settings |= {"restarts": options.restarts, "sigma0": options.sigma0}
    if options.independent:
        settings["antithetic"] = False
    if options.learning_rate is not None or options.variance_learning_rate is not None:
        rate = 0.1 if options.learning_rate is None else options.learning_rate
        settings["optimizer"] = cones.Adam(rate, options.variance_learning_rate)
    if options.bounds:
        settings["bounds"] = [tuple(options.bounds)] * dim
    return {name: value for name, value in settings.items() if value is not None}


def _objective(
    options: argparse.Namespace, stack: ExitStack
) -> tuple[Callable[..., Any], Any, Callable[[], dict[str, Any]] | None]:
    """The function, the workers, and what can be said of its failures."""
    if (options.function is None) == (options.command is None):
        raise InputError("what to minimise: expected either MODULE:FUNCTION or --command")
    if isinstance(options.workers, int) and options.workers != -1:
        check_integer("--workers", options.workers, 1)
    if options.command is None:
        return _imported(options.function), options.workers or 1, None
    if options.vectorized:
        raise InputError("--vectorized: expected with MODULE:FUNCTION only; a --command takes one candidate")
    if isinstance(options.workers, str):
        raise InputError(f"--workers: expected a number with --command, got {options.workers}")
    if options.retries is not None:
        raise InputError("--retries: expected with MODULE:FUNCTION only; a --command that fails counts as NaN at once")
    timeout = None if options.timeout is None else check_positive("--timeout", options.timeout)
    count = options.workers if options.workers and options.workers > 0 else core_count()
    command = CommandObjective(options.command, timeout)
    pool = stack.enter_context(ThreadPoolExecutor(count))
    stack.callback(command.kill)  # before the pool waits for its threads
    return command, pool, command.failures


def _workers(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return text


def _imported(path: str) -> Callable[..., Any]:
    module_name, colon, name = path.partition(":")
    if not colon or not name or not module_name or module_name.startswith(".") or module_name.endswith(".py"):
        raise InputError(f"{path}: expected MODULE:FUNCTION, such as mypackage.losses:loss (no path, no .py)")
    sys.path.insert(0, os.getcwd())
    try:
        thing: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise InputError(f"{path}: no module named {error.name!r} here or among the installed packages") from None
    for part in name.split("."):
        if not hasattr(thing, part):
            raise InputError(f"{path}: {module_name} has no {name!r}")
        thing = getattr(thing, part)
    if not callable(thing):
        raise InputError(f"{path}: expected a function, got {type(thing).__name__}")
    return thing  # type: ignore[no-any-return]


def _start(options: argparse.Namespace) -> Vector:
    if (options.x0 is None) == (options.dim is None):
        raise InputError("where to start: expected either --x0 or --dim")
    if options.dim is not None:
        return np.zeros(check_integer("--dim", options.dim, 1))
    text = options.x0
    try:
        return check_vector("--x0", [float(number) for number in text.split(",")])
    except ValueError as error:
        if isinstance(error, InputError):
            raise
    try:
        return check_vector("--x0", json.loads(Path(text).read_text()))
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"--x0: expected numbers separated by commas or a JSON file, got {text[:80]!r}") from None
