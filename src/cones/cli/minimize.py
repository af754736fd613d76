"""`cones minimize`: a Python function, or any program that reads a vector and prints a number."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import Any

from scipy.optimize import OptimizeResult

import cones
from cones.checks import check_integer
from cones.cli.flags import add_method, add_method_flags, allowed_by, workers
from cones.cli.objective import objective_from
from cones.cli.settings import check_method, check_resumed, settings, start_from
from cones.errors import InputError
from cones.methods import sentence_of
from cones.progress.stopping import ALL_FAILED_IN_A_ROW, LIMITS
from cones.records.record import rounded

__all__ = ["add_to"]

DESCRIPTION = """\
Minimise a Python function, or what a program prints.

  cones minimize package.module:function --dim 20
      function(x) takes a vector and returns a number. Modules of the current folder are found.

  cones minimize --command "./simulate --verbose {input}" --dim 8 --workers 4 --timeout 600
      {input} is the path of a file that holds the candidate as a JSON array of numbers. Without {input}
      the array comes on standard input. The last line that the program prints must be the loss.
      A candidate whose program fails, prints no number or takes longer than --timeout counts as NaN,
      which ranks worst; failures are counted and shown. When all candidates of the first iteration fail,
      or of ten in a row, the run stops.

The result is written as JSON to standard output, or, with the history of the run, to --out; `cones plot` draws
it. Progress, and what the function prints, goes to standard error. With --checkpoint FILE a run that was killed
goes on with the same command and --resume.

Components of your own are named MODULE:CLASS. `cones components` lists the others and their settings, which are
written as in --optimizer adam,learning_rate=0.05.
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
    add_method(how)
    add_method_flags(how, popsize="CMA: 4 + 3 log n.")
    how.add_argument("--seed", metavar="K", type=int, help="makes the run repeatable")
    how.add_argument(
        "--workers",
        metavar="K",
        type=workers,
        help="evaluations at a time (default 1; --command: one per core), -1 for one per core; for functions also "
        "ray, ray://HOST:PORT, or tcp://HOST:PORT of a Dask scheduler",
    )
    end = parser.add_argument_group("when to stop")
    for name in LIMITS:
        end.add_argument(f"--{name}", metavar="V", type=float, help=sentence_of(name))
    keep = parser.add_argument_group("what is kept")
    keep.add_argument("--out", metavar="FILE", help="write the result here instead of to standard output")
    keep.add_argument("--checkpoint", metavar="FILE", help="keep the run here as it goes")
    keep.add_argument("--checkpoint-every", metavar="K", type=int, help="iterations between checkpoints")
    keep.add_argument(
        "--resume", action="store_true", help="go on from --checkpoint if it exists, whatever --x0 and --sigma0 say"
    )
    keep.add_argument(
        "--allow",
        metavar="MODULE:CLASS",
        action="append",
        help="With --resume: a component of your own that the checkpoint may name. Those of other flags are allowed.",
    )
    keep.add_argument("--quiet", action="store_true", help="no progress")
    parser.set_defaults(call=run)


def run(options: argparse.Namespace) -> int:
    _check_files(options)
    check_method(options, options.method)
    if options.seed is not None:
        check_integer("--seed", options.seed, 0)
    with ExitStack() as stack:
        fun, workers, failures = objective_from(options, stack)
        try:
            with redirect_stdout(sys.stderr):  # what the function prints is not the result
                result = _minimised(options, fun, workers)
        except (Exception, SystemExit) as error:
            result = getattr(error, "cones_result", None)
            if result is not None and result.nfev:
                result.stop, result.message = "error", f"{type(error).__name__}: {error}"
                _write(options, result, failures)
            raise
    return _write(options, result, failures) or _exit_code(options, result)


def _write(options: argparse.Namespace, result: OptimizeResult, failures: Callable[[], dict[str, Any]] | None) -> int:
    """Print the result, or write it to a file; 1 if that cannot be done."""
    report = {
        "x": [float(v) for v in result.x],
        "fun": _number(result.fun),
        **{name: result[name] for name in ("nfev", "nit", "success", "stop", "message")},
        "failures": {**(failures() if failures else {}), "count": int(result.history["failures"].sum())},
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
    return 0


def _exit_code(options: argparse.Namespace, result: OptimizeResult) -> int:
    """0 if something was found; otherwise it is said what was not."""
    if result.stop == "interrupted":
        again = "; --resume goes on from the checkpoint" if options.checkpoint else ""
        found = "before there was a loss" if math.isnan(result.fun) else "this is the best so far"
        print(f"cones: interrupted, {found}{again}", file=sys.stderr)
        return 130
    if result.stop == "all_nan":
        if math.isnan(result.fun):
            found = "all candidates of the first iteration failed; correct the function or the program"
        else:
            found = (
                f"all candidates of the last {ALL_FAILED_IN_A_ROW} iterations failed; this is the best of those before"
            )
        print(f"cones: {found}", file=sys.stderr)
        return 1
    if result.stop in ("diverged", "no_step"):
        print(f"cones: {result.message}", file=sys.stderr)
        return 1
    if result.fun == math.inf:
        print("cones: no candidate had a finite loss", file=sys.stderr)
        return 1
    return 0


def _number(value: float) -> float | str | None:
    """As JSON, which knows no infinity."""
    return None if math.isnan(value) else float(value) if math.isfinite(value) else str(value)


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


def _minimised(options: argparse.Namespace, fun: Callable[..., Any], workers: Any) -> OptimizeResult:
    limits: Any = {name: getattr(options, name) for name in LIMITS if getattr(options, name) is not None}
    # A program is ended by its own timeout.
    faults = {"timeout": options.timeout, "retries": options.retries} if options.command is None else {}
    if options.resume and Path(options.checkpoint).exists():
        check_resumed(options)
        return cones.resume(
            options.checkpoint,
            fun,
            vectorized=options.vectorized or None,
            workers=workers,
            disp=not options.quiet,
            checkpoint_every=options.checkpoint_every,
            allow=allowed_by(options),
            **faults,
            **limits,
        )
    x0 = start_from(options)
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
        **settings(options, x0.size),
        **limits,
    )
