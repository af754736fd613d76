"""`cones plot`: figures of runs."""

from __future__ import annotations

import argparse
from typing import Any

from cones.errors import InputError
from cones.plots import plot
from cones.plots.curves import AXES

__all__ = ["add_to"]

DESCRIPTION = """\
Draw runs over each other: loss or reward, spread, step length, radii and KL, as
far as they are recorded.

  cones plot run.ckpt                          a checkpoint, also of a live run
  cones plot a.json b.json --labels ES,CoNES   files of `cones minimize --out`
  cones plot DIR/runs/*.json.gz --x seconds    records of an experiment
  cones plot DIR                               a folder of `cones train` or
                                               `cones run`, packed or not

Runs that differ only in their seed, and files with the same label, become one
curve: their mean in a band of one standard deviation. Fewer than five seeds are
drawn one by one, as thin lines.
"""


def add_to(commands: Any, common: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "plot",
        parents=[common],
        help="draw runs over each other",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="checkpoints, records, results, folders")
    parser.add_argument("--out", metavar="FILE", default="cones.png", help=".png, .pdf or .svg (default cones.png)")
    parser.add_argument("--x", choices=AXES, help="default: evaluations, or timesteps of training runs")
    parser.add_argument("--labels", metavar="A,B", help="one per FILE, separated by commas")
    parser.add_argument("--title", metavar="TEXT", default="", help="title of the figure")
    parser.set_defaults(call=run)


def run(options: argparse.Namespace) -> int:
    labels = None if options.labels is None else [label.strip() for label in options.labels.split(",")]
    if labels is not None and len(labels) != len(options.files):
        raise InputError(f"--labels: expected {len(options.files)}, one per FILE, got {len(labels)}")
    figure = plot(*options.files, labels=labels, x=options.x, title=options.title, out=options.out)
    shown = ", ".join(axis.get_title() for axis in figure.axes if axis.get_visible())
    print(f"{options.out}: {shown}")
    return 0
