"""`cones minimize`: a Python function, or any program that reads a vector and prints a number."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from scipy.optimize import OptimizeResult

import cones
from cones.checks import check_integer
from cones.cli.command import plain_values
from cones.cli.flags import add_method, add_method_flags, allowed_by, workers
from cones.cli.objective import objective_from
from cones.cli.output import output_for_result
from cones.cli.parser import OnceBoolean
from cones.cli.settings import check_method, check_resumed, settings, start_from
from cones.errors import InputError
from cones.files import check_folder
from cones.methods import sentence_of
from cones.progress.limits import LIMITS
from cones.progress.stopping import FAILED_IN_A_ROW
from cones.records.record import rounded
from cones.space.space import Space

__all__ = ["add_to"]

DESCRIPTION = """\
Minimise a Python function or the output of a program.

  cones minimize package.module:function --dim 20
      function(x) takes a vector and returns a number. Modules in the current
      folder can be imported.

  cones minimize --command "./simulate --verbose {input}" --dim 8 --timeout 600
      {input} stands for a file with the candidate as a JSON array of numbers,
      or with --space as a JSON object. Without {input} the candidate comes on
      standard input. The last line of the output must be the loss.
      The loss is NaN, which ranks worst, if the program fails, prints no number
      or exceeds --timeout. Failures are counted and reported. The run stops if
      the first iteration has no finite loss, or ten iterations in a row.

  cones minimize --command ./train --space space.toml
      [lr]              [layers]            [act]
      type = "float"    type = "integer"    type = "choice"
      low = 1e-5        low = 1             options = ["relu", "tanh"]
      high = 1e-1       high = 8
      log = true        start = 2           # [a.b] is a group
      type = "flag" is true or false.

The result is printed as JSON. --out writes it to a file, with the history of
the run, for `cones plot`. Progress and the output of the function go to
standard error. To continue a run with --checkpoint FILE that was stopped, add
--resume to the same command.

A component of your own is written MODULE:CLASS. `cones components` lists those
of cones and their settings, which are written as in
--optimizer adam,learning_rate=0.05.
"""


def add_to(commands: Any, common: argparse.ArgumentParser) -> None:
    text = "minimise a Python function or a program's output"
    parser = commands.add_parser(
        "minimize",
        usage="cones minimize (MODULE:FUNCTION | --command CMD)\n"
        "                      (--x0 X | --dim N | --space FILE) [options]",
        parents=[common],
        help=text,
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_argument_group("what to minimise")
    what.add_argument("function", nargs="?", metavar="MODULE:FUNCTION", help="a Python function")
    what.add_argument("--command", metavar="CMD", help="a program; {input} stands for the candidate's file")
    what.add_argument("--timeout", metavar="S", type=float, help="seconds per candidate")
    what.add_argument(
        "--retries", metavar="K", type=int, help="retry a failed candidate up to K times before it counts as NaN"
    )
    what.add_argument(
        "--vectorized", action="store_true", help="the function takes a (k, n) array, one candidate per row"
    )
    what.add_argument(
        "--early-end",
        action="store_true",
        help="end candidates that are sure to be among the worse half of their population. The program prints lines "
        "such as `12.5 40%%`: the loss so far, which can only grow, and the share that is done. A function takes an "
        "argument race, a cones.Race.",
    )
    start = parser.add_argument_group("where to start")
    start.add_argument("--x0", metavar="X", help="numbers separated by commas, or a JSON file with an array")
    start.add_argument("--dim", metavar="N", type=int, help="start from N zeros")
    start.add_argument(
        "--space",
        metavar="FILE",
        help="a TOML or JSON file with named parameters; candidates are JSON objects",
    )
    start.add_argument(
        "--sigma0",
        metavar="S",
        help="initial standard deviation (default 1, or a quarter of the width of the bounds): one number, or one per "
        "coordinate as for --x0; with --space a share of the ranges (default 0.25)",
    )
    start.add_argument(
        "--bounds",
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="bounds: each a number, or one per coordinate as for --x0; inf for none",
    )
    how = parser.add_argument_group("how")
    add_method(how)
    add_method_flags(how, popsize="CMA: 4 + 3 log n.")
    how.add_argument(
        "--noisy",
        action=OnceBoolean,
        help="whether the loss is random. If it is, the run ends by measuring it at the mean, with 1%% of the budget "
        "and at least 10 evaluations. Default: one evaluation at the end finds out.",
    )
    how.add_argument(
        "--replicates",
        choices=("auto",),
        help="auto: evaluate each candidate of a noisy loss as often as it takes to rank them",
    )
    how.add_argument("--seed", metavar="K", type=int, help="seed of the random numbers, for a reproducible run")
    how.add_argument(
        "--workers",
        metavar="K",
        type=workers,
        help="evaluations at a time (default: 1 for a function, one per core for --command); -1: one per core; for "
        "functions also ray, ray://HOST:PORT, or tcp://HOST:PORT of a Dask scheduler",
    )
    how.add_argument(
        "--asynchronous",
        action="store_true",
        help="a free worker gets a new candidate at once; for evaluations of unequal length",
    )
    end = parser.add_argument_group("when to stop")
    for name in LIMITS:
        end.add_argument(f"--{name}", metavar="V", type=float, help=sentence_of(name))
    keep = parser.add_argument_group("what to save")
    keep.add_argument("--out", metavar="FILE", help="write the result and the history to this file")
    keep.add_argument("--checkpoint", metavar="FILE", help="write checkpoints to this file")
    keep.add_argument(
        "--checkpoint-every", metavar="K", type=int, help="iterations between checkpoints (default: by time)"
    )
    keep.add_argument(
        "--resume", action="store_true", help="continue from --checkpoint if it exists, and ignore --x0 and --sigma0"
    )
    keep.add_argument(
        "--allow",
        metavar="MODULE:CLASS",
        action="append",
        help="with --resume: a component of your own that the checkpoint may contain, besides those in other flags",
    )
    keep.add_argument("--quiet", action="store_true", help="hide progress")
    parser.set_defaults(call=run)


def run(options: argparse.Namespace) -> int:
    _check_files(options)
    check_method(options, options.method)
    if options.seed is not None:
        check_integer("--seed", options.seed, 0)
    with ExitStack() as stack:
        fun, workers = objective_from(options, stack)
        try:
            with output_for_result():
                result = _minimised(options, fun, workers)
        except (Exception, SystemExit) as error:
            result = getattr(error, "cones_result", None)
            if result is not None and result.nfev:
                result.stop, result.message = "error", f"{type(error).__name__}: {error}"
                _write(options, result)
            raise
    return _write(options, result) or _exit_code(options, result)


def _write(options: argparse.Namespace, result: OptimizeResult) -> int:
    """Print the result, or write it to a file. Returns 1 on failure."""
    report = {
        "x": plain_values(result.x),
        "fun": _number(result.fun),
        **{name: result[name] for name in ("method", "nfev", "nit", "restarts", "success", "stop", "message")},
        **_noise(result),
        **{name: result[name] for name in ("ended", "saved") if name in result},
        "failures": {"count": int(result.history["failures"].sum())},
    }
    if result.failures:
        report["failures"]["example"] = result.failures[-1]
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
        print(f"cones: {count} evaluations failed{f', the last: {example}' if example else ''}", file=sys.stderr)
    return 0


def _exit_code(options: argparse.Namespace, result: OptimizeResult) -> int:
    """0 if a finite loss was found and the run ended normally; otherwise print the reason."""
    if result.stop == "interrupted":
        again = "; --resume continues from the checkpoint" if options.checkpoint else ""
        found = "before the first loss" if math.isnan(result.fun) else "this is the best so far"
        print(f"cones: interrupted, {found}{again}", file=sys.stderr)
        return 130
    if result.stop == "no_finite_loss":
        if not math.isfinite(result.fun):
            found = "no loss of the first iteration was finite; fix the function or the program"
        else:
            found = f"no loss of the last {FAILED_IN_A_ROW} iterations was finite; this is the best of earlier ones"
        print(f"cones: {found}", file=sys.stderr)
        return 1
    if result.stop in ("diverged", "no_step"):
        print(f"cones: {result.message}", file=sys.stderr)
        return 1
    if result.fun == math.inf:
        print("cones: no candidate had a finite loss", file=sys.stderr)
        return 1
    return 0


def _noise(result: OptimizeResult) -> dict[str, Any]:
    """What was found out about the noise of the loss; of a noisy one also the mean and the loss there."""
    if not result.noisy:
        return {"noisy": result.noisy}
    numbers = {name: _number(result[name]) for name in ("mean_fun", "mean_fun_error", "x_fun", "x_fun_error")}
    return {"noisy": True, "use": result.use, "mean": plain_values(result.mean), **numbers}


def _number(value: float) -> float | str | None:
    """A value for JSON, which has neither NaN nor infinity."""
    return None if math.isnan(value) else float(value) if math.isfinite(value) else str(value)


def _with_history(text: str, result: OptimizeResult) -> str:
    """The report with one line per column of the history, for `cones plot`."""
    columns = {name: [rounded(value) for value in column] for name, column in result.history.items()}
    lines = ",\n".join(f'    "{name}": {json.dumps(column)}' for name, column in columns.items())
    return text.removesuffix("\n}\n") + ',\n  "history": {\n' + lines + "\n  }\n}\n"


def _check_files(options: argparse.Namespace) -> None:
    """Check paths before the run starts, so that no result is lost at its end."""
    if options.out:
        check_folder("--out", options.out)
    if options.resume and not options.checkpoint:
        raise InputError("--resume: expected together with --checkpoint, got no --checkpoint")
    if options.checkpoint and not options.resume and Path(options.checkpoint).exists():
        raise InputError(f"--checkpoint: {options.checkpoint} exists; continue it with --resume, or move it away")


def _minimised(options: argparse.Namespace, fun: Callable[..., Any], workers: Any) -> OptimizeResult:
    limits: Any = {name: getattr(options, name) for name in LIMITS if getattr(options, name) is not None}
    retries = 0 if options.retries is None and options.command is not None else options.retries
    faults: Any = {"timeout": options.timeout, "retries": retries}
    if options.early_end:
        faults["early_end"] = True
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
        asynchronous=options.asynchronous,
        disp=not options.quiet,
        checkpoint=options.checkpoint,
        checkpoint_every=options.checkpoint_every,
        noisy=options.noisy,
        replicates=options.replicates,
        **faults,
        **settings(options, x0.dim if isinstance(x0, Space) else x0.size),
        **limits,
    )
