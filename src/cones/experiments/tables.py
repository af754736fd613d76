"""The tables of a report: where the runs end, what they took; as text, Markdown and HTML."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cones.experiments.summary import Group, Summary
from cones.rl.tasks import PAPER
from cones.types import Vector

__all__ = ["PAPER_MINUTES", "Table", "end_table", "markdown", "plus_minus", "time_table"]

# Run times per seed on functions that the paper reports, in minutes, on a 10-core 3.3 GHz i9-7900X.
PAPER_MINUTES = {"ES": 1.0, "NES": 1.0, "CoNES": 5.0, "CMA": 35.0}


@dataclass(frozen=True)
class Table:
    """A head and rows of text; `best` says which rows to mark."""

    head: list[str]
    rows: list[list[str]]
    best: list[bool]

    def as_text(self) -> str:
        widths = [max(len(row[place]) for row in (self.head, *self.rows)) for place in range(len(self.head))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (self.head, *self.rows)
        ]
        return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])

    def as_html(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.head)
        rows = [
            f"<tr{' class=best' if best else ''}>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row, best in zip(self.rows, self.best, strict=True)
        ]
        return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'

    def as_markdown(self) -> str:
        lines = [list(map(markdown, self.head)), ["---"] * len(self.head)]
        for row, best in zip(self.rows, self.best, strict=True):
            cells = list(map(markdown, row))
            lines.append([f"**{cell}**" if best else cell for cell in cells])
        return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def markdown(text: str) -> str:
    """Text that Markdown shows as it is: neither HTML, nor links or emphasis, nor the end of a cell or line."""
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", html.escape(" ".join(text.split()), quote=False))


def plus_minus(mean: float, deviation: float, count: int, digits: int = 4) -> str:
    """A mean over `count` numbers; a single one has no deviation."""
    if math.isnan(mean):
        return "-"
    return f"{mean:.{digits}g}" + (f" ± {deviation:.2g}" if count > 1 else "")


def end_table(summary: Summary) -> Table:
    """Where the runs end; on tasks with the timesteps to the target, beside the paper's."""
    return _rewards(summary) if summary.on_tasks else _losses(summary)


def _losses(summary: Summary) -> Table:
    head = ["problem", "method", "seeds", "evaluations", "mean loss", "loss at the mean", "step of the mean"]
    rows, best = [], []
    for problem in summary.problems:
        groups = summary.of(problem)
        # Methods are compared at the same number of evaluations only.
        most = max(group.spent for group in groups)
        ends = [group.at_end("mean_loss")[0] if group.spent > 0.99 * most else math.inf for group in groups]
        for group, end in zip(groups, ends, strict=True):
            numbers = [_end(group, column) for column in ("mean_loss", "loss_at_mean", "step")]
            rows.append([problem, group.method, str(len(group.records)), f"{group.spent:,}", *numbers])
            best.append(end == min(ends))
    return Table(head, rows, best)


def _end(group: Group, column: str) -> str:
    return plus_minus(*group.at_end(column), len(group.records))


def _rewards(summary: Summary) -> Table:
    head = ["task", "method", "seeds", "timesteps", "reward of the mean policy", "mean reward of the population"]
    has_target = any(group.target is not None for group in summary.groups)
    if has_target:
        head += ["target", "timesteps to it, seeds averaged", "by seed", "paper (-v2)"]
    rows, best = [], []
    for task in summary.problems:
        groups = summary.of(task)
        arrivals = [group.to_target()[0] for group in groups]
        first = min((value for value in arrivals if not math.isnan(value)), default=math.nan)
        for group, arrival in zip(groups, arrivals, strict=True):
            numbers = [_end(group, column) for column in ("mean_reward", "population_reward")]
            row = [task, group.method, str(len(group.records)), f"{group.spent:,}", *numbers]
            rows.append([*row, *_target(group, arrival)] if has_target else row)
            best.append(arrival == first)
    return Table(head, rows, best)


def _target(group: Group, arrival: float) -> list[str]:
    if group.target is None:
        return ["-"] * 4
    each = np.array(group.to_target()[1])
    reached = each[~np.isnan(each)]
    by_seed = f"{plus_minus(reached.mean(), reached.std(), reached.size, 3)}, " if reached.size else ""
    paper = PAPER.get(group.problem)
    published = paper.timesteps.get(group.method) if paper else None
    missed = f"not in {paper.limit:.0e}".replace("e+0", "e") if paper and group.method in PAPER_MINUTES else "-"
    return [
        f"{group.target:g}",
        _never(group, each) if math.isnan(arrival) else f"{arrival:.3g}",
        f"{by_seed}{reached.size} of {each.size} seeds",
        missed if published is None else f"{published:.3g}",
    ]


def _never(group: Group, each: Vector) -> str:
    """Said of a mean over seeds, which ends with the shortest; if that was left at the target, nothing can be said."""
    ends = group.ends
    left_there = ends.min() < ends.max() and not np.isnan(each[ends == ends.min()]).any()
    return "-" if left_there else f"not in {group.spent:.3g}"


def time_table(summary: Summary, paper_minutes: Mapping[str, float] | None = None) -> Table:
    """Seconds per run, and over ES; on functions beside the paper's."""
    unit = "timesteps" if summary.on_tasks else "evaluations"
    head = ["method", "runs", "seconds per run", "of which optimizer", f"seconds per 1000 {unit}", "over ES"]
    if paper_minutes:
        head += ["paper, per run", "paper, over ES"]
    by_method = {name: [g for g in summary.groups if g.method == name] for name in summary.methods}
    cost = {name: float(np.mean([group.seconds_each() for group in groups])) for name, groups in by_method.items()}
    rows = []
    for name, groups in by_method.items():
        records = [record for group in groups for record in group.records]
        seconds = np.array([record.seconds for record in records])
        if np.isnan(seconds).any():  # only some iterations were kept
            rows.append([name, str(len(records)), *["-"] * (len(head) - 2)])
            continue
        own = np.array([np.nansum(record.columns["optimizer_seconds"]) for record in records])
        same = {group.problem for group in groups} == {g.problem for g in by_method.get("ES", [])}
        same = same and not math.isnan(cost["ES"])
        row = [
            name,
            str(len(records)),
            plus_minus(float(seconds.mean()), float(seconds.std()), len(records)),
            f"{100.0 * own.sum() / seconds.sum():.3g}%",
            f"{1e3 * cost[name]:.3g}",
            f"{cost[name] / cost['ES']:.3g}" if same else "-",
        ]
        if paper_minutes:
            minutes = paper_minutes.get(name)
            row += [f"{minutes:g} min", f"{minutes / paper_minutes['ES']:g}"] if minutes else ["-", "-"]
        rows.append(row)
    return Table(head, rows, [False] * len(rows))
