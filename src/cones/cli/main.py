"""The parser, and how errors end a command."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence

import cones
from cones.cli import experiment, info, minimize
from cones.errors import ConesError

__all__ = ["main", "parser"]

EPILOG = """\
examples:
  cones minimize mymodule:loss --dim 20            minimise a Python function of a vector
  cones minimize --command "./simulate {input}" --dim 8 --workers 4
                                                   minimise what a program prints
  cones reproduce functions                        the paper's function experiments, in a short form
  cones run experiment.toml --out DIR              your own comparison, declared in a file
  cones report DIR                                 figures and report of what was recorded

`cones COMMAND --help` explains each command.
"""


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="cones",
        description="Convex natural evolution strategies for expensive, high-dimensional black boxes.",
        epilog=EPILOG,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=16),
    )
    top.add_argument("--version", action="version", version=f"cones {cones.__version__}")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = top.add_subparsers(dest="command_name", metavar="COMMAND", required=True)
    minimize.add_to(commands, common)
    experiment.add_to(commands, common)
    info.add_to(commands, common)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 0 for success, 1 for failure, 2 for bad input, 130 for Ctrl-C."""
    options = parser().parse_args(arguments)
    if options.debug:
        os.environ["CONES_DEBUG"] = "1"  # for the processes of a run
    try:
        return int(options.call(options))
    except (ConesError, TypeError, OSError) as error:
        if options.debug:
            traceback.print_exc()
        print(f"cones: {_one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("cones: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        if options.debug:
            traceback.print_exc()
        notes = "; ".join(getattr(error, "__notes__", []))
        print(f"cones: {type(error).__name__}: {_one_line(error)}{f' ({notes})' if notes else ''}", file=sys.stderr)
        print("cones: --debug shows where it was raised", file=sys.stderr)
        return 1


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
