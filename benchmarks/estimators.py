"""Tables and figures of the experiments on estimators and relatives: `python -m benchmarks.estimators results docs`.

`results/estimators`, `estimators-swimmer`: the mean loss of the last population, or the reward of the mean policy at
the end, for each estimator with plain, natural and convex steps.
`results/corrupted`: the loss at the mean, without corruption, by evaluations.
`results/relatives`, `relatives-1000`, `relatives-swimmer`, `relatives-halfcheetah`: the loss at the mean, or the
reward of the mean policy, at the end.

Cells are medians over complete seeds: those of which every method has a finished run on every problem. With a second
argument the tables are written into the pages, below lines such as `<!-- table: relatives -->`.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np

from cones.errors import InputError
from cones.experiments.summary import Summary, summarise
from cones.plots.colours import colour_of
from cones.plots.drawing import FEW_SEEDS, draw_curve, make_log, new_figure, plain, save_figure, style_axis, wants_log
from cones.plots.labels import label_ends, room_for
from cones.records.folder import Folder

__all__ = ["PAGES", "complete", "draw_corrupted", "draw_refined", "ends", "filled", "tables"]

STEPS = ("ES", "NES", "CoNES")
PAGES = {
    "estimators": "estimators.md",
    "corrupted": "estimators.md",
    "relatives": "relatives.md",
    "relatives-1000": "relatives.md",
    "relatives-policies": "relatives.md",
}
METHODS = {"MORE Stein": "MORE"}  # in the same column
REWARD = "mean_reward"


def complete(folder: str | Path) -> Summary | None:
    """The records of the complete seeds; None if there are none."""
    try:
        summary = summarise(Folder(folder))
    except InputError:
        return None
    seeds = [{record.run["seed"] for record in group.records if record.finished} for group in summary.groups]
    whole = set.intersection(*seeds) if not summary.missing else set()
    groups = [
        replace(group, records=[record for record in group.records if record.run["seed"] in whole])
        for group in summary.groups
    ]
    return replace(summary, groups=groups) if whole else None


def count(summary: Summary) -> str:
    """How many seeds a summary has, in words."""
    seeds = len(summary.groups[0].records)
    return "1 seed" if seeds == 1 else f"{seeds} seeds"


def ends(summary: Summary, column: str = "loss_at_mean") -> dict[str, dict[str, float]]:
    """The median over seeds at the end, by problem and method; on tasks, of the reward."""
    column = REWARD if summary.on_tasks else column
    found: dict[str, dict[str, float]] = {}
    for group in summary.groups:
        last = median(float(values[-1]) for _, values in group.seed_curves(column))
        found.setdefault(group.problem, {})[METHODS.get(group.method, group.method)] = last
    return found


def by_estimator(of_problem: dict[str, float]) -> dict[str, dict[str, float]]:
    """The losses of plain, natural and convex steps, by estimator; methods are labelled "STEP ESTIMATOR"."""
    found: dict[str, dict[str, float]] = {}
    for label, loss in of_problem.items():
        step, estimator = label.split(" ", 1)
        found.setdefault(estimator, {})[step] = loss
    return found


def shown(value: float, is_reward: bool = False) -> str:
    return f"{value:.0f}" if is_reward else f"{value:.2g}"


def refined(results: Path) -> list[tuple[Summary, dict[str, dict[str, dict[str, float]]]]]:
    """By folder, problem, estimator and step: the losses, and the rewards."""
    found = [complete(results / name) for name in ("estimators", "estimators-swimmer")]
    return [
        (summary, {problem: by_estimator(cells) for problem, cells in ends(summary, "mean_loss").items()})
        for summary in found
        if summary is not None
    ]


def refined_table(results: Path) -> str:
    """A row per problem, a column per estimator, in each cell plain / natural / convex; as Markdown."""
    rows: list[list[str]] = []
    for summary, found in refined(results):
        for problem, cells in found.items():
            rows = rows or [["ES / NES / CoNES", *cells], ["---"] * (1 + len(cells))]
            name = f"{problem}, {'reward, ' if summary.on_tasks else ''}{count(summary)}"
            texts = (" / ".join(shown(cells[e][step], summary.on_tasks) for step in STEPS) for e in cells)
            rows.append([name, *texts])
    return _markdown(rows)


def table(folders: list[Path], column: str = "loss_at_mean") -> str:
    """A row per problem, a column per method, "-" where one was not run; as Markdown."""
    there = [summary for summary in map(complete, folders) if summary is not None]
    found = [(summary, ends(summary, column)) for summary in there]
    methods = list(dict.fromkeys(name for _, rows in found for losses in rows.values() for name in losses))
    rows = [["", *methods], ["---"] * (1 + len(methods))]
    for summary, of_problem in found:
        for problem, losses in of_problem.items():
            texts = (shown(losses[name], summary.on_tasks) if name in losses else "-" for name in methods)
            rows.append([f"{problem}, {count(summary)}", *texts])
    return _markdown(rows)


def tables(results: str | Path) -> dict[str, str]:
    """All tables by name."""
    place = Path(results)
    return {
        "estimators": refined_table(place),
        "corrupted": table([place / "corrupted"]),
        "relatives": table([place / "relatives"]),
        "relatives-1000": table([place / "relatives-1000"]),
        "relatives-policies": table([place / "relatives-swimmer", place / "relatives-halfcheetah"]),
    }


def filled(page: str, name: str, content: str) -> str:
    """A page with the table below its mark replaced."""
    return re.sub(rf"(<!-- table: {name} -->\n\n?)(\|[^\n]*\n)*", lambda found: f"{found[1]}{content}\n", page)


def _markdown(rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def draw_refined(results: Path, out: str | Path) -> None:
    """A panel per problem: the loss or reward at the end over the estimator, a colour per kind of step."""
    panels = [(summary, *cells) for summary, found in refined(results) for cells in found.items()]
    columns = 3
    figure = new_figure((11.4, 2.9 * -(-len(panels) // columns)))
    axes = figure.subplots(-(-len(panels) // columns), columns, squeeze=False)
    for axis, (summary, problem, cells) in zip(axes.flat, panels, strict=False):
        names = [name.replace("_", "\n") for name in cells]
        ends_of = []
        for step in STEPS:
            values, colour = [cells[name][step] for name in cells], colour_of(step, STEPS)
            axis.plot(range(len(names)), values, "o", color=colour)
            ends_of.append((values[-1], step, colour))
        all_values = [np.array([cells[name][step] for name in cells]) for step in STEPS]
        if not summary.on_tasks and wants_log(all_values):
            make_log(axis, all_values)
        style_axis(axis, plain(f"{problem}, {count(summary)}"), "")
        axis.set_xticks(range(len(names)), names, fontsize=7)
        axis.set_ylabel("reward of the mean policy" if summary.on_tasks else "mean loss at the end")
        label_ends(axis, ends_of)
    for axis in list(axes.flat)[len(panels) :]:
        axis.set_visible(False)
    save_figure(figure, out)


def draw_corrupted(folder: str | Path, out: str | Path) -> None:
    """The loss at the mean by evaluations, a line per method."""
    summary = complete(folder)
    if summary is None:
        return
    figure = new_figure(((3.4 + room_for(summary.methods)) * len(summary.problems), 3.6))
    axes = figure.subplots(1, len(summary.problems), squeeze=False)
    for axis, problem in zip(axes.flat, summary.problems, strict=True):
        ends_of, means = [], []
        for group in summary.of(problem):
            colour = colour_of(group.method, summary.methods)
            x, mean, deviation = group.curve("loss_at_mean")
            few = len(group.records) < FEW_SEEDS
            seeds = group.seed_curves("loss_at_mean") if few else []
            draw_curve(axis, x, mean, None if few else deviation, colour, True, seeds)
            ends_of.append((float(mean[-1]), plain(group.method), colour))
            means.append(mean)
        make_log(axis, means)
        style_axis(axis, plain(f"{problem}, {count(summary)}"), "evaluations")
        label_ends(axis, ends_of, gap=0.06)
    axes[0, 0].set_ylabel("loss at the mean")
    save_figure(figure, out)


if __name__ == "__main__":
    results = Path(sys.argv[1])
    for name, content in tables(results).items():
        print(f"{name}\n\n{content}\n")
        if len(sys.argv) > 2:
            page = Path(sys.argv[2]) / PAGES[name]
            page.write_text(filled(page.read_text(), name, content))
    draw_refined(results, results / "estimators" / "figures" / "refined.png")
    draw_corrupted(results / "corrupted", results / "corrupted" / "figures" / "loss_at_mean.png")
