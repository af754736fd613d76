"""The parser of the command line, and its exit codes."""

from __future__ import annotations

import argparse
import atexit
import os
import select
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

import cones
from cones.cli import bench, experiment, info, minimize, plot, train
from cones.cli.parser import Parser
from cones.errors import ConesError

__all__ = ["main", "parser"]

EPILOG = """\
examples:
  cones minimize mymodule:loss --dim 20    minimise a Python function
  cones minimize --command "./simulate {input}" --dim 8 --workers 4
                                           minimise what a program prints
  cones train Swimmer-v4 --timesteps 3e6   train a policy
  cones run experiment.toml --out DIR      run the experiment of a file
  cones report DIR                         figures and a report of its runs
  cones plot run.ckpt                      plot loss, spread and steps of a run
  cones reproduce functions                the paper's experiments, in short
  cones bench coco --dimensions 20,40      run a standard benchmark

`cones COMMAND --help` explains each command.
"""


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = Parser(
        prog="cones",
        description="Convex natural evolution strategies for expensive, high-dimensional black boxes.",
        epilog=EPILOG,
        formatter_class=_with_one_column,
    )
    top.add_argument("--version", action="version", version=f"cones {cones.__version__}")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = top.add_subparsers(dest="command_name", metavar="COMMAND", required=True)
    minimize.add_to(commands, common)
    train.add_to(commands, common)
    experiment.add_to(commands, common)
    plot.add_to(commands, common)
    bench.add_to(commands, common)
    info.add_to(commands, common)
    return top


def _with_one_column(prog: str) -> argparse.HelpFormatter:
    """A formatter with room for the longest command: argparse forgets that commands are indented."""
    formatter = argparse.RawDescriptionHelpFormatter(prog, max_help_position=17)
    formatter._action_max_length = 15
    return formatter


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 0 for success, 1 for failure, 2 for bad input, 130 for Ctrl-C."""
    options = parser().parse_args(arguments)
    atexit.unregister(_ignore_interrupts)
    atexit.register(_ignore_interrupts)  # all is said and written then; an impatient Ctrl-C would only be noise
    if options.debug:
        os.environ["CONES_DEBUG"] = "1"  # for the processes of a run
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # users' functions and environments, as for `python -m`
    try:
        with _signals_as_interrupts(), _own_warnings_in_one_line():
            code = int(options.call(options))
            sys.stdout.flush()
            return code
    except KeyboardInterrupt:
        print("cones: interrupted", file=sys.stderr)
        return 130
    except (Exception, SystemExit) as error:
        if isinstance(error, BrokenPipeError) and _reader_has_left():
            return 0
        if options.debug:
            traceback.print_exc()
        notes = [note.removeprefix("cones: ") for note in getattr(error, "__notes__", [])]
        if isinstance(error, (ConesError, TypeError, OSError)) and not notes:
            print(f"cones: {_one_line(error)}", file=sys.stderr)
            return 2
        # The objective raised it: not bad input.
        where = f" ({'; '.join(notes)})" if notes else ""
        print(f"cones: {type(error).__name__}: {_one_line(error)}{where}; --debug shows where", file=sys.stderr)
        return 1


def _reader_has_left() -> bool:
    """True if the reader of standard output has closed it, as in `cones problems | head`."""
    try:
        poll, output = select.poll(), sys.stdout.fileno()
    except (AttributeError, OSError):  # no poll on this system, or no file behind stdout
        return False
    poll.register(output, 0)
    left = any(event & select.POLLERR for _, event in poll.poll(0))
    if left:
        os.dup2(os.open(os.devnull, os.O_WRONLY), output)  # prevents an error message at exit
    return left


@contextmanager
def _signals_as_interrupts() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP as Ctrl-C: the run saves its result and ends its programs."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    taken = []
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP
                signal.signal(number, interrupt)
                taken.append(number)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _ignore_interrupts() -> None:
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _own_warnings_in_one_line() -> Iterator[None]:
    """Show warnings of cones as its errors are; those of other code as ever."""
    others, own = warnings.showwarning, os.path.dirname(cones.__file__) + os.sep

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if filename.startswith(own):
            print(f"cones: warning: {' '.join(str(message).split())}", file=sys.stderr)
        else:
            others(message, category, filename, lineno, file, line)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = others


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
