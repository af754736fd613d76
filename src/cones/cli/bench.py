"""`cones bench coco`."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cones.checks import check_integer
from cones.errors import InputError
from cones.methods import METHODS
from cones.run.display import ProgressLine, duration

if TYPE_CHECKING:
    from cones.integrations.coco import Standing

__all__ = ["add_to"]

BENCH = """\
Run a method on standard benchmarks.

  cones bench coco --suite bbob-largescale --dimensions 20,40,80 --budget 100
"""

COCO = """\
Run a method on a COCO suite (https://coco-platform.org) and write data for its
post-processing.

  cones bench coco --dimensions 20,40 --out coco/cones
  cones bench coco --dimensions 20,40 --out coco/cma --method cma
  python -m cocopp coco/cones coco/cma    compare both; pages are in ppdata/

suites: bbob (2 to 40 dimensions), bbob-largescale (20 to 640) and bbob-boxed
have functions 1 to 24; bbob-noisy has functions 101 to 130. A whole suite takes
long: start with --functions 1,8,15 --instances 1-3. To use several machines,
split a suite by --functions and put the output folders into one folder, which
cocopp reads as one run.

Needs the extra coco; `cones doctor` says how to install it. Ctrl-C ends the
run; the data written until then is complete.
"""


def add_to(commands: Any, common: argparse.ArgumentParser) -> None:
    raw = argparse.RawDescriptionHelpFormatter
    text = "run a method on standard benchmarks"
    bench = commands.add_parser("bench", help=text, description=BENCH, formatter_class=raw)
    kinds = bench.add_subparsers(dest="benchmark", metavar="BENCHMARK", required=True)
    text = "COCO suites: bbob, bbob-largescale, ..."
    coco = kinds.add_parser(
        "coco", usage="cones bench coco [options]", parents=[common], help=text, description=COCO, formatter_class=raw
    )
    what = coco.add_argument_group("problems")
    what.add_argument("--suite", metavar="NAME", default="bbob-largescale", help="default: bbob-largescale")
    for name, text in (
        ("dimensions", "such as 20,40,80 (default: all of the suite)"),
        ("functions", "such as 1,8 or 1-24 (default: all of the suite)"),
        ("instances", "such as 1-3 (default: COCO's fifteen)"),
    ):
        what.add_argument(f"--{name}", metavar="K", type=_numbers, help=text)
    what.add_argument(
        "--budget", metavar="B", type=float, default=100.0, help="evaluations per problem and dimension (default 100)"
    )
    how = coco.add_argument_group("method")
    how.add_argument("--method", choices=list(METHODS), default="cones", help="default: cones")
    how.add_argument("--popsize", metavar="N", type=int, help="candidates per iteration (default: the method's)")
    how.add_argument("--belief", choices=["diagonal", "full"], help="covariance (default diagonal)")
    how.add_argument("--seed", metavar="K", type=int, default=0, help="makes the run repeatable (default 0)")
    coco.add_argument("--out", metavar="DIR", help="folder for the data (default: cones-results/SUITE-METHOD)")
    coco.add_argument("--quiet", action="store_true", help="no progress")
    coco.set_defaults(call=run)


def run(options: argparse.Namespace) -> int:
    from cones.integrations.coco import run_suite

    check_integer("--seed", options.seed, 0)
    out = Path(options.out) if options.out else Path("cones-results", f"{options.suite}-{options.method}")
    settings = {name: getattr(options, name) for name in ("popsize", "belief") if getattr(options, name) is not None}
    if options.method == "cma" and options.belief:
        raise InputError("--belief: expected with another method, got --method cma")
    line = None if options.quiet else ProgressLine()

    def follow(standing: Standing) -> None:
        if line:
            line.show(lambda: _describe(standing))

    try:
        standing = run_suite(
            out,
            suite=options.suite,
            dimensions=options.dimensions,
            functions=options.functions,
            instances=options.instances,
            budget=options.budget,
            method=options.method,
            rng=options.seed,
            follow=follow,
            **settings,
        )
    except KeyboardInterrupt:
        if line:
            line.close()
        print(f"cones: interrupted; python -m cocopp {shlex.quote(str(out))} reads the data so far", file=sys.stderr)
        return 130
    finally:
        if line:
            line.close()
    print(
        f"{standing.solved} of {standing.problems} problems solved with {standing.evaluations} evaluations "
        f"in {duration(standing.seconds)}; next: python -m cocopp {shlex.quote(str(out))}"
    )
    return 0


def _describe(standing: Standing) -> str:
    parts = [
        f"{standing.done} of {standing.problems} problems",
        f"{standing.solved} solved",
        standing.problem,
        f"{standing.evaluations} evals",
        duration(standing.seconds),
    ]
    if standing.done:
        # A lower bound: later dimensions are larger and take longer.
        parts.append(f">{duration(standing.seconds * (standing.problems - standing.done) / standing.done)} left")
    return "  ".join(parts)


def _numbers(text: str) -> list[int]:
    """1,3-5 as [1, 3, 4, 5]."""
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        try:
            numbers += range(int(first), int(last) + 1) if dash else [int(first)]
        except ValueError:
            raise argparse.ArgumentTypeError(f"expected numbers such as 1,3-5, got {text!r}") from None
    if not numbers:
        raise argparse.ArgumentTypeError(f"expected numbers such as 1,3-5, got {text!r}")
    return numbers
