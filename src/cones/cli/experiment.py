"""`cones run`, `cones report` and `cones reproduce`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from cones.checks import check_integer
from cones.errors import InputError
from cones.experiments.figures import draw_figures
from cones.experiments.records import Folder
from cones.experiments.report import write_report
from cones.experiments.runner import run_experiment
from cones.experiments.spec import Experiment, Run, read_experiment
from cones.experiments.summary import summarise, text_table

__all__ = ["add_to"]

# Run times per seed that the paper reports, in minutes, on a 10-core 3.3 GHz i9-7900X.
PAPER_MINUTES = {"functions": {"ES": 1.0, "NES": 1.0, "CoNES": 5.0, "CMA": 35.0}}

RUN = """\
Run an experiment that a TOML file declares: every method on every problem with every seed.
Runs are spread over all cores. Each writes a record as it goes; finished runs are skipped and broken
ones taken up from their checkpoint, so that after a crash or Ctrl-C the same command goes on.

an experiment file:
  name = "mine"
  seeds = 5                     # or a list of seeds
  maxfev = 20_000
  start = { mean = 0.0, sigma = 1.0 }
  [[problems]]
  problem = "rastrigin"         # see `cones problems`
  dim = 1000
  [[methods]]
  method = "cones"              # see `cones methods`
  popsize = 100
  radius = 45.0
  [[methods]]
  method = "cma"
  diagonal = true
"""

REPRODUCE = """\
Reproduce the paper's experiments. `functions` is its section 7.1: Sphere, Rosenbrock, Rastrigin and
Lunacek in 5000 dimensions with ES, NES, CMA and CoNES.
  --quick   3 seeds, 30 000 evaluations, CMA in a reduced budget: a few minutes on 2 cores (default)
  --full    the paper's protocol, 10 seeds and 100 000 evaluations; CMA takes about an hour per run
The same command goes on where it was stopped.
"""


def add_to(commands: Any, common: argparse.ArgumentParser) -> None:
    raw = argparse.RawDescriptionHelpFormatter
    run = commands.add_parser(
        "run", parents=[common], help="run an experiment file", description=RUN, formatter_class=raw
    )
    run.add_argument("spec", metavar="SPEC.toml", help="the experiment file")
    run.add_argument("--out", metavar="DIR", help="folder of results (default: cones-results/NAME)")
    _selection(run)
    run.set_defaults(call=run_file)

    text = "figures and report of a folder of results"
    report = commands.add_parser("report", parents=[common], help=text, description=f"Write {text}.")
    report.add_argument("folder", metavar="DIR", help="a folder that `cones run` or `cones reproduce` has filled")
    report.set_defaults(call=report_folder)

    again = commands.add_parser(
        "reproduce",
        parents=[common],
        help="reproduce the paper's experiments",
        description=REPRODUCE,
        formatter_class=raw,
    )
    again.add_argument("what", choices=["functions"], help="which of the paper's experiments")
    size = again.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="the short form (default)")
    size.add_argument("--full", action="store_true", help="the paper's protocol")
    again.add_argument("--out", metavar="DIR", help="folder of results (default: cones-results/functions[-quick])")
    _selection(again)
    again.set_defaults(call=reproduce)


def _selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--methods", metavar="A,B", help="only methods with these labels, for now")
    parser.add_argument("--seeds", metavar="K", type=int, help="only the first K seeds, for now")
    parser.add_argument("--workers", metavar="K", type=int, help="runs at a time (default: one per core)")


def run_file(options: argparse.Namespace) -> int:
    return _run(read_experiment(options.spec), options, None)


def reproduce(options: argparse.Namespace) -> int:
    name = options.what if options.full else f"{options.what}-quick"
    with as_file(files("cones.experiments").joinpath(f"declared/{name}.toml")) as path:
        experiment = read_experiment(path)
    return _run(experiment, options, PAPER_MINUTES[options.what])


def report_folder(options: argparse.Namespace) -> int:
    folder = Folder(options.folder)
    name = str(folder.experiment()["name"]).removesuffix("-quick")
    _report(folder, PAPER_MINUTES.get(name))
    return 0


def _run(experiment: Experiment, options: argparse.Namespace, paper: Mapping[str, float] | None) -> int:
    folder = Folder(options.out or Path("cones-results", experiment.name))
    if options.workers is not None:
        check_integer("--workers", options.workers, 1)
    print(
        f"{experiment.title or experiment.name}: {len(experiment.runs())} runs, results in {folder.path}",
        file=sys.stderr,
    )
    outcome = run_experiment(experiment, folder.path, only=_only(experiment, options), workers=options.workers)
    if outcome.interrupted:
        print("cones: interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    if any(folder.runs.glob("*.json.gz")):
        _report(folder, paper)
    if outcome.failed:
        first = next(iter(outcome.failed.items()))
        print(
            f"cones: {len(outcome.failed)} runs failed, the first: {first[0]}: {first[1]}; "
            "the same command tries them again, --debug shows where they failed",
            file=sys.stderr,
        )
        return 1
    return 0


def _only(experiment: Experiment, options: argparse.Namespace) -> Any:
    labels = {method.label.lower(): method.label for method in experiment.methods}
    wanted = set(labels.values())
    if options.methods:
        names = [name.strip().lower() for name in options.methods.split(",")]
        if unknown := [name for name in names if name not in labels]:
            raise InputError(f"--methods: expected some of {', '.join(labels.values())}, got {', '.join(unknown)}")
        wanted = {labels[name] for name in names}
    if options.seeds is not None:
        check_integer("--seeds", options.seeds, 1)

    def only(run: Run) -> bool:
        seeds = run.method.seeds if options.seeds is None else run.method.seeds[: options.seeds]
        return run.method.label in wanted and run.seed in seeds

    return only


def _report(folder: Folder, paper: Mapping[str, float] | None) -> None:
    summary = summarise(folder)
    print(text_table(summary))
    report = write_report(summary, folder.path / "report.html", paper)
    figures = [path for path in draw_figures(summary, folder.path / "figures") if path.suffix == ".png"]
    print(f"\nfigures: {', '.join(map(str, figures))}\nreport:  {report}")
