"""A self-contained HTML report: curves to read values off, tables, specification, environment."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from cones.experiments.figures import FIGURES, colour_of, wants_log
from cones.experiments.records import write_atomically
from cones.experiments.summary import Summary, plus_minus
from cones.types import Vector

__all__ = ["write_report"]

MOST_POINTS = 300


def write_report(summary: Summary, path: Path, paper_minutes: Mapping[str, float] | None = None) -> Path:
    """Write the report of a summary, and its tables as Markdown beside it.

    `paper_minutes` are the run times per seed that the paper gives, by method.
    """
    page = files("cones.experiments").joinpath("report.html").read_text()
    title = summary.experiment.get("title") or summary.experiment["name"]
    parts = {
        "TITLE": html.escape(title),
        "DATA": json.dumps(_data(summary)).replace("<", "\\u003c"),
        "LOSSES": _loss_table(summary).as_html(),
        "TIMES": _time_table(summary, paper_minutes).as_html(),
        "NOTES": _notes(summary),
        "SPECIFICATION": html.escape(json.dumps(summary.experiment, indent=2)),
        "ENVIRONMENT": html.escape(json.dumps(summary.environments, indent=2)),
    }
    # In one pass, so that what is filled in is not searched for places to fill.
    page = re.sub(r"<!--([A-Z]+)-->", lambda match: parts[match[1]], page)
    write_atomically(path, page.encode())
    tables = [_loss_table(summary).as_markdown(), _time_table(summary, paper_minutes).as_markdown()]
    write_atomically(path.with_name("tables.md"), "\n".join(tables).encode())
    return path


def _data(summary: Summary) -> dict[str, Any]:
    """Curves thinned to what a screen can show, for the page's script."""
    methods = summary.methods
    charts = []
    for name, (column, title) in FIGURES.items():
        for problem in summary.problems:
            groups = summary.of(problem)
            lines = []
            for group in groups:
                x, mean, deviation = group.curve(column)
                kept = np.unique(np.linspace(0, x.size - 1, min(MOST_POINTS, x.size)).round().astype(int))
                lines.append(
                    {
                        "method": group.method,
                        "x": _numbers(x[kept]),
                        "mean": _numbers(mean[kept]),
                        "deviation": _numbers(deviation[kept]),
                    }
                )
            log = wants_log([group.curve(column)[1] for group in groups])
            charts.append({"figure": name, "title": problem, "y": title, "log": log, "lines": lines})
    return {"methods": [{"name": name, "colour": colour_of(name, methods)} for name in methods], "charts": charts}


def _numbers(values: Vector) -> list[float | None]:
    return [float(f"{value:.6g}") if math.isfinite(value) else None for value in values]


@dataclass(frozen=True)
class _Table:
    head: list[str]
    rows: list[list[str]]
    best: list[bool]  # the rows to mark

    def as_html(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.head)
        rows = [
            f"<tr{' class=best' if best else ''}>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row, best in zip(self.rows, self.best, strict=True)
        ]
        return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'

    def as_markdown(self) -> str:
        lines = [self.head, ["---"] * len(self.head)]
        for row, best in zip(self.rows, self.best, strict=True):
            cells = [html.escape(cell, quote=False).replace("|", "\\|") for cell in row]
            lines.append([f"**{cell}**" if best else cell for cell in cells])
        return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _loss_table(summary: Summary) -> _Table:
    head = ["problem", "method", "seeds", "evaluations", "mean loss", "loss at the mean", "step of the mean"]
    rows, best = [], []
    for problem in summary.problems:
        groups = summary.of(problem)
        # Methods are compared at the same number of evaluations only.
        most = max(group.evaluations for group in groups)
        ends = [group.at_end("mean_loss")[0] if group.evaluations > 0.99 * most else math.inf for group in groups]
        for group, end in zip(groups, ends, strict=True):
            numbers = [plus_minus(*group.at_end(column)) for column in ("mean_loss", "loss_at_mean", "step")]
            rows.append([problem, group.method, str(len(group.records)), f"{group.evaluations:,}", *numbers])
            best.append(end == min(ends))
    return _Table(head, rows, best)


def _time_table(summary: Summary, paper_minutes: Mapping[str, float] | None) -> _Table:
    head = ["method", "runs", "seconds per run", "of which optimizer", "seconds per 1000 evaluations", "over ES"]
    if paper_minutes:
        head += ["paper, per run", "paper, over ES"]
    by_method = {name: [g for g in summary.groups if g.method == name] for name in summary.methods}
    cost = {name: float(np.mean([g.seconds_per_evaluation() for g in groups])) for name, groups in by_method.items()}
    rows = []
    for name, groups in by_method.items():
        records = [record for group in groups for record in group.records]
        seconds = np.array([record.seconds for record in records])
        own = np.array([record.columns["optimizer_seconds"].sum() for record in records])
        row = [
            name,
            str(len(records)),
            plus_minus(float(seconds.mean()), float(seconds.std())),
            f"{100.0 * own.sum() / seconds.sum():.0f}%",
            f"{1e3 * cost[name]:.3g}",
            f"{cost[name] / cost['ES']:.3g}" if "ES" in cost else "-",
        ]
        if paper_minutes:
            minutes = paper_minutes.get(name)
            row += [f"{minutes:g} min", f"{minutes / paper_minutes['ES']:g}"] if minutes else ["-", "-"]
        rows.append(row)
    return _Table(head, rows, [False] * len(rows))


def _notes(summary: Summary) -> str:
    notes = [f"{group.method} on {group.problem}: {group.label}" for group in summary.groups if group.label]
    if not notes:
        return "<p>All runs are complete as declared below.</p>"
    return "<ul>" + "".join(f"<li>{html.escape(note)}</li>" for note in notes) + "</ul>"
