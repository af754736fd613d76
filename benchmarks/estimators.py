"""Tables and figures of the experiments on estimators: `python -m benchmarks.estimators results`.

`results/estimators`: the mean loss of the last population, for each estimator with plain, natural and convex steps.
`results/corrupted`: the loss at the mean, without corruption, by evaluations.
`results/relatives`: the loss at the mean at the end, and the best loss.
"""

from __future__ import annotations

import sys
from pathlib import Path

from cones.experiments.summary import Summary, summarise
from cones.plots.colours import colour_of
from cones.plots.drawing import FEW_SEEDS, draw_curve, make_log, new_figure, plain, save_figure, style_axis
from cones.plots.labels import label_ends, room_for
from cones.records.folder import Folder

__all__ = ["draw_corrupted", "draw_refined", "ends", "refined_table", "table"]

STEPS = ("ES", "NES", "CoNES")


def ends(summary: Summary, column: str = "loss_at_mean") -> dict[str, dict[str, float]]:
    """The mean over seeds at the end, by problem and method."""
    return {
        problem: {group.method: group.at_end(column)[0] for group in summary.of(problem)}
        for problem in summary.problems
    }


def by_estimator(of_problem: dict[str, float]) -> dict[str, dict[str, float]]:
    """The losses of plain, natural and convex steps, by estimator; methods are labelled "STEP ESTIMATOR"."""
    found: dict[str, dict[str, float]] = {}
    for label, loss in of_problem.items():
        step, estimator = label.split(" ", 1)
        found.setdefault(estimator, {})[step] = loss
    return found


def refined_table(folder: str | Path) -> str:
    """A row per problem, a column per estimator, in each cell plain / natural / convex; as Markdown."""
    found = {problem: by_estimator(losses) for problem, losses in ends(summarise(Folder(folder)), "mean_loss").items()}
    estimators = list(next(iter(found.values())))
    rows = [["ES / NES / CoNES", *estimators], ["---"] * (1 + len(estimators))]
    for problem, cells in found.items():
        rows.append([problem, *(" / ".join(f"{cells[name][step]:.2g}" for step in STEPS) for name in estimators)])
    return _markdown(rows)


def table(folder: str | Path, column: str = "loss_at_mean") -> str:
    """A row per problem, a column per method; as Markdown."""
    found = ends(summarise(Folder(folder)), column)
    methods = list(next(iter(found.values())))
    rows = [["", *methods], ["---"] * (1 + len(methods))]
    rows += [[problem, *(f"{losses[name]:.2g}" for name in methods)] for problem, losses in found.items()]
    return _markdown(rows)


def _markdown(rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def draw_refined(folder: str | Path, out: str | Path) -> None:
    """A panel per problem: the loss at the end over the estimator, a line per kind of step."""
    found = ends(summarise(Folder(folder)), "mean_loss")
    figure = new_figure((13.6, 6.8))
    axes = figure.subplots(2, -(-len(found) // 2), squeeze=False)
    for axis, (problem, losses) in zip(axes.flat, found.items(), strict=False):
        cells = by_estimator(losses)
        names = [name.replace("_", "\n") for name in cells]
        axis.set_yscale("log")
        ends_of = []
        for step in STEPS:
            values, colour = [cells[name][step] for name in cells], colour_of(step, STEPS)
            axis.plot(range(len(names)), values, "o-", color=colour, linewidth=0.8)
            ends_of.append((values[-1], step, colour))
        style_axis(axis, plain(problem), "")
        axis.set_xticks(range(len(names)), names, fontsize=7)
        label_ends(axis, ends_of)
    for axis in axes[:, 0]:
        axis.set_ylabel("mean loss of the last population")
    save_figure(figure, out)


def draw_corrupted(folder: str | Path, out: str | Path) -> None:
    """The loss at the mean by evaluations, a line per method."""
    summary = summarise(Folder(folder))
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
        style_axis(axis, plain(problem), "evaluations")
        label_ends(axis, ends_of, gap=0.06)
    axes[0, 0].set_ylabel("loss at the mean")
    save_figure(figure, out)


if __name__ == "__main__":
    results = Path(sys.argv[1])
    print(refined_table(results / "estimators"), table(results / "corrupted"), sep="\n\n")
    print(table(results / "relatives"), table(results / "relatives", "best"), sep="\n\n")
    draw_refined(results / "estimators", results / "estimators" / "figures" / "refined.png")
    draw_corrupted(results / "corrupted", results / "corrupted" / "figures" / "loss_at_mean.png")
