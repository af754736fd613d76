"""The command line: `python -m benchmarks.bbob run|table|figure`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.bbob.figure import draw
from benchmarks.bbob.methods import METHODS
from benchmarks.bbob.problems import SUITES, numbers
from benchmarks.bbob.run import run_suite
from benchmarks.bbob.table import tables


def setting(text: str) -> tuple[str, Any]:
    """NAME=VALUE, where the value is JSON or else a string."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m benchmarks.bbob", description="Comparison with peers on COCO.")
    commands = top.add_subparsers(dest="command", required=True)

    run = commands.add_parser("run", help="run a method; problems that its record has already are skipped")
    run.add_argument("--method", required=True, choices=METHODS)
    run.add_argument("--suite", default="bbob", choices=SUITES)
    run.add_argument("--dims", type=numbers, default=[5], metavar="5,10")
    run.add_argument("--functions", type=numbers, metavar="1-24", help="all by default")
    run.add_argument("--instances", type=numbers, default=numbers("1-5"), metavar="1-5")
    run.add_argument("--budget", type=int, default=2000, metavar="N", help="evaluations per dimension")
    run.add_argument("--out", type=Path, default=Path("results/bbob"), metavar="FOLDER")
    run.add_argument("--label", help="name of the record; by default, that of the method")
    run.add_argument("--set", type=setting, action="append", default=[], metavar="NAME=VALUE", dest="settings")
    run.add_argument("--fresh", action="store_true", help="begin anew whatever the record has")

    table = commands.add_parser("table", help="share, area and ratios, in Markdown")
    table.add_argument("folder", type=Path)
    table.add_argument("--methods", nargs="+", metavar="NAME", help="labels, in this order; all by default")
    table.add_argument("--against", default="pycma", metavar="NAME", help="compare with this one")
    table.add_argument("--functions", type=numbers, metavar="1-24")
    table.add_argument("--instances", type=numbers, metavar="1-5")
    table.add_argument("--by-function", action="store_true", help="add a table with a row per function")
    table.add_argument("--save", type=Path, metavar="FILE", help="write the tables to a file as well")

    figure = commands.add_parser("figure", help="runtime distributions, a panel per dimension")
    figure.add_argument("folder", type=Path)
    figure.add_argument("--suite", default="bbob", choices=SUITES)
    figure.add_argument("--dims", type=numbers, metavar="5,10", help="all by default")
    figure.add_argument("--methods", nargs="+", metavar="NAME", help="labels, in this order; all by default")
    figure.add_argument("--out", type=Path, required=True, metavar="FILE")
    return top


def main() -> None:
    options = parser().parse_args()
    if options.command == "run":
        for dimension in options.dims:
            run_suite(
                options.method,
                options.suite,
                dimension,
                options.functions or numbers("1-54" if options.suite == "bbob-constrained" else "1-24"),
                options.instances,
                options.budget,
                options.out,
                label=options.label,
                settings=dict(options.settings),
                fresh=options.fresh,
            )
    elif options.command == "table":
        text = tables(
            options.folder,
            options.methods,
            against=options.against,
            functions=options.functions,
            instances=options.instances,
            by_function=options.by_function,
        )
        print(text)
        if options.save:
            options.save.write_text(text)
    else:
        draw(options.folder, options.out, options.suite, options.dims, options.methods)


if __name__ == "__main__":
    main()
