"""A self-contained HTML report: curves to read values off, tables, specification, environment."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from cones.display import duration
from cones.experiments.figures import FIGURES, colour_of, wants_log
from cones.experiments.records import write_atomically
from cones.experiments.summary import Summary, plus_minus
from cones.types import Vector

__all__ = ["write_report"]

MOST_POINTS = 300


def write_report(summary: Summary, path: Path, paper_minutes: Mapping[str, float] | None = None) -> Path:
    """Write the report of a summary; `paper_minutes` are the paper's run times per seed by method."""
    page = files("cones.experiments").joinpath("report.html").read_text()
    title = summary.experiment.get("title") or summary.experiment["name"]
    parts = {
        "TITLE": html.escape(title),
        "DATA": json.dumps(_data(summary)).replace("</", "<\\/"),
        "LOSSES": _loss_table(summary),
        "TIMES": _time_table(summary, paper_minutes),
        "NOTES": _notes(summary),
        "SPECIFICATION": html.escape(json.dumps(summary.experiment, indent=2)),
        "ENVIRONMENT": html.escape(json.dumps(summary.environments, indent=2)),
    }
    for name, part in parts.items():
        page = page.replace(f"<!--{name}-->", part)
    write_atomically(path, page.encode())
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


def _loss_table(summary: Summary) -> str:
    rows = []
    for problem in summary.problems:
        groups = summary.of(problem)
        ends = [group.at_end("mean_loss")[0] for group in groups]
        for group, end in zip(groups, ends, strict=True):
            best = ' class="best"' if end == min(ends) else ""
            cells = [problem, group.method, str(len(group.records)), f"{group.evaluations:,}"]
            numbers = [plus_minus(*group.at_end(column)) for column in ("mean_loss", "loss_at_mean", "step")]
            rows.append(f"<tr{best}>" + "".join(f"<td>{html.escape(c)}</td>" for c in (*cells, *numbers)) + "</tr>")
    head = ("problem", "method", "seeds", "evaluations", "mean loss", "loss at the mean", "step of the mean")
    return _table(head, rows)


def _time_table(summary: Summary, paper_minutes: Mapping[str, float] | None) -> str:
    head = ["method", "seconds per run", "of which optimizer", "ms per 100 evaluations", "over ES"]
    if paper_minutes:
        head += ["paper, per run", "paper, over ES"]
    by_method = {name: [g for g in summary.groups if g.method == name] for name in summary.methods}
    cost = {name: float(np.mean([g.seconds_per_evaluation() for g in groups])) for name, groups in by_method.items()}
    rows = []
    for name, groups in by_method.items():
        records = [record for group in groups for record in group.records]
        seconds = np.array([record.seconds for record in records])
        own = np.array([record.columns["optimizer_seconds"].sum() for record in records])
        cells = [
            name,
            plus_minus(float(seconds.mean()), float(seconds.std())),
            f"{100.0 * own.sum() / seconds.sum():.0f}%",
            f"{1e5 * cost[name]:.2f}",
            f"{cost[name] / cost['ES']:.2f}" if "ES" in cost else "-",
        ]
        if paper_minutes:
            minutes = paper_minutes.get(name)
            cells += [duration(60.0 * minutes), f"{minutes / paper_minutes['ES']:g}"] if minutes else ["-", "-"]
        rows.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    return _table(head, rows)


def _table(head: Any, rows: list[str]) -> str:
    cells = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    return f'<div class="wide"><table><thead><tr>{cells}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _notes(summary: Summary) -> str:
    notes = [f"{group.method} on {group.problem}: {group.label}" for group in summary.groups if group.label]
    if not notes:
        return "<p>All runs are complete as declared below.</p>"
    return "<ul>" + "".join(f"<li>{html.escape(note)}</li>" for note in notes) + "</ul>"
