"""`cones run`, `cones report`, `cones pack` and `cones reproduce`."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from cones import packed
from cones.checks import check_integer, check_positive
from cones.errors import InputError
from cones.experiments.figures import draw_figures
from cones.experiments.report import write_report
from cones.experiments.runner import run_experiment
from cones.experiments.spec import AnyRun, Experiment
from cones.experiments.summary import summarise
from cones.experiments.tables import PAPER_MINUTES, end_table
from cones.experiments.toml import read_experiment
from cones.records.folder import Folder
from cones.records.session import Pause
from cones.rl.training import TrainingPause

__all__ = ["add_to"]

RUN = """\
Run an experiment that a TOML file declares: every method on every problem with
every seed. Runs are spread over all cores. Each writes its record while it
runs. After a crash or Ctrl-C the same command goes on: finished runs are
skipped, and the others continue from their checkpoints. A record whose
checkpoint is gone is kept as it is.

an experiment file:
  name = "mine"
  seeds = 5                     # or a list of seeds
  maxfev = 20_000
  start = { mean = 2.0, sigma = 1.0 }
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

PACK = """\
Put the records and policies of a folder of results into one file, DIR/runs.zip,
instead of a file per run in DIR/runs. All commands read both, and name a file
as before: DIR/runs/NAME. An experiment can go on: what it writes to DIR/runs
replaces what is packed, and `cones pack` again puts both together. Checkpoints
stay where they are. `unzip -d DIR/runs DIR/runs.zip` gives the files back.
"""

REPRODUCE = """\
Reproduce the paper's experiments, and those on adaptive radii.

functions: section 7.1 of the paper. Sphere, Rosenbrock, Rastrigin and Lunacek
in 5000 dimensions with ES, NES, CMA and CoNES.
  --quick      3 seeds, 30 000 evaluations, CMA with fewer: a few minutes on 2
               cores (default)
  --full       the paper's protocol, 10 seeds and 100 000 evaluations; CMA takes
               about an hour per run

rl: section 7.2 of the paper. HalfCheetah, Walker2d, Hopper and Swimmer (-v4)
with ES, NES, CMA and CoNES, and with adaptive radii.
  --quick      Swimmer with CoNES, as in the paper and adaptive, one seed, 10^6
               timesteps: a minute or two (default)
  --full       the paper's protocol, 10 seeds and up to 5*10^7 timesteps: days;
               do it in pieces with --env, --methods, --seeds, --timesteps and
               --until-target
  --sweep      CoNES with the radii that the paper tried, 3 seeds
  --ten        one default on ten tasks, from CartPole to Humanoid, 3 seeds,
               5*10^6 timesteps

adaptive: beyond the paper. Adaptive radii against the paper's setting, NES, ES,
PyCMA's diagonal mode and cmaes's SepCMA, on eight functions.
  --quick      200 dimensions, one seed: a minute (default)
  --full       5000 and 1000 dimensions, 5 seeds: an hour or two

robustness: adaptive radii with initial spreads that are ten times too large or
too small, and with noisy losses.
  --full       1000 dimensions, 5 seeds

After Ctrl-C the same command continues.
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
    report.add_argument(
        "folder", metavar="DIR", help="folder that `cones run`, `cones reproduce` or `cones train` has written"
    )
    report.set_defaults(call=report_folder)

    pack = commands.add_parser(
        "pack",
        parents=[common],
        help="put the records of a folder of results into one file",
        description=PACK,
        formatter_class=raw,
    )
    pack.add_argument("folders", metavar="DIR", nargs="+", help="folders of results")
    pack.set_defaults(call=pack_folders)

    again = commands.add_parser(
        "reproduce",
        usage="cones reproduce (functions | rl | adaptive | robustness) [options]",
        parents=[common],
        help="reproduce the paper's experiments, and those on adaptive radii",
        description=REPRODUCE,
        formatter_class=raw,
    )
    again.add_argument("what", choices=["functions", "rl", "adaptive", "robustness"], help="which experiment")
    size = again.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="the short form (default)")
    size.add_argument("--full", action="store_true", help="the paper's protocol")
    size.add_argument("--sweep", action="store_true", help="rl: the radii that the paper tried")
    size.add_argument("--ten", action="store_true", help="rl: ten other tasks")
    again.add_argument("--out", metavar="DIR", help="folder of results (default: cones-results/NAME)")
    _selection(again)
    again.set_defaults(call=reproduce)


def _selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--env", metavar="A,B", help="policies: only these tasks")
    parser.add_argument("--timesteps", metavar="T", type=float, help="policies: pause each run after T timesteps")
    parser.add_argument(
        "--until-target",
        action="store_true",
        help="policies: pause each run when its mean policy reaches the target",
    )
    parser.add_argument("--methods", metavar="A,B", help="only methods with these labels")
    parser.add_argument("--seeds", metavar="K", type=int, help="only the first K seeds")
    parser.add_argument("--workers", metavar="K", type=int, help="runs at a time (default: one per core)")


def run_file(options: argparse.Namespace) -> int:
    experiment = read_experiment(options.spec)
    return _run(experiment, options)


def reproduce(options: argparse.Namespace) -> int:
    for name in ("sweep", "ten"):
        if options.what != "rl" and getattr(options, name):
            raise InputError(f"--{name}: expected with `cones reproduce rl` only")
    if options.what == "robustness" and not options.full:
        raise InputError("robustness: expected with --full; there is no quick form")
    forms = {
        "": options.full,
        "-sweep": options.sweep,
        "-ten": options.ten,
    }
    name = options.what + next((form for form, chosen in forms.items() if chosen), "-quick")
    with as_file(files("cones.experiments").joinpath(f"declared/{name}.toml")) as path:
        experiment = read_experiment(path)
    return _run(experiment, options)


def report_folder(options: argparse.Namespace) -> int:
    _report(Folder(options.folder))
    return 0


def pack_folders(options: argparse.Namespace) -> int:
    for folder in map(Folder, options.folders):
        print(f"{packed.archive_of(folder.runs)}: {folder.pack()} files")
    return 0


def _run(experiment: Experiment, options: argparse.Namespace) -> int:
    pause, only = _pause(experiment, options), _only(experiment, options)
    folder = Folder(options.out or Path("cones-results", experiment.name))
    if options.workers is not None:
        check_integer("--workers", options.workers, 1)
    count = sum(map(only, experiment.runs()))
    print(
        f"{experiment.title or experiment.name}: {count} run{'s' if count != 1 else ''}, results in {folder.path}",
        file=sys.stderr,
    )
    outcome = run_experiment(experiment, folder.path, only=only, pause=pause, workers=options.workers)
    if outcome.interrupted:
        print("cones: interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    if folder.has_records():
        _report(folder)
    if outcome.failed:
        first = next(iter(outcome.failed.items()))
        print(
            f"cones: {len(outcome.failed)} runs failed, the first: {first[0]}: {first[1]}; "
            "the same command tries them again, --debug shows where they failed",
            file=sys.stderr,
        )
        return 1
    return 0


def _chosen(flag: str, text: str | None, known: list[str]) -> set[str]:
    """The names in a list separated by commas, in any case; all names if the list is empty."""
    if not text:
        return set(known)
    by_name = {name.lower(): name for name in known}
    names = [name.strip().lower() for name in text.split(",")]
    if unknown := [name for name in names if name not in by_name]:
        raise InputError(f"{flag}: expected some of {', '.join(known)}, got {', '.join(unknown)}")
    return {by_name[name] for name in names}


def _only(experiment: Experiment, options: argparse.Namespace) -> Callable[[AnyRun], bool]:
    wanted = _chosen("--methods", options.methods, [method.label for method in experiment.methods])
    tasks = _chosen("--env", options.env, [task.task for task in experiment.tasks])
    if options.seeds is not None:
        most = max(len(method.seeds) for method in experiment.methods)
        if check_integer("--seeds", options.seeds, 1) > most:
            raise InputError(f"--seeds: the experiment has {most} seeds, got {options.seeds}")

    def only(run: AnyRun) -> bool:
        seeds = run.method.seeds if options.seeds is None else run.method.seeds[: options.seeds]
        on_task = not options.env or run.on.label in tasks
        return on_task and run.method.label in wanted and run.seed in seeds

    return only


def _pause(experiment: Experiment, options: argparse.Namespace) -> Pause:
    if not experiment.tasks:
        for name in ("env", "timesteps", "until_target"):
            if getattr(options, name):
                raise InputError(f"--{name.replace('_', '-')}: expected for policies, and {experiment.name} has none")
        return Pause()
    limit = math.inf if options.timesteps is None else check_positive("--timesteps", options.timesteps)
    return TrainingPause(limit, options.until_target)


def _report(folder: Folder) -> None:
    summary = summarise(folder)
    print(end_table(summary).as_text())
    for note in summary.notes:
        print(f"  {note}")
    paper = PAPER_MINUTES if summary.experiment["name"] in ("functions", "functions-quick") else None
    report = write_report(summary, folder.path / "report.html", paper)
    figures = [path for path in draw_figures(summary, folder.path / "figures") if path.suffix == ".png"]
    print(f"\nfigures: {', '.join(map(str, figures))}\nreport:  {report}")
