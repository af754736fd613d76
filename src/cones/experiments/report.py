"""A self-contained HTML report: curves to read values off, tables, specification, environment."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from cones.experiments.figures import figures_of, seeds_shown
from cones.experiments.summary import Summary
from cones.experiments.tables import end_table, markdown, time_table
from cones.files import atomic_write
from cones.plots.colours import colour_of
from cones.plots.drawing import FEW_SEEDS, log_floor, wants_log
from cones.types import Vector

__all__ = ["write_report"]

MOST_POINTS = 300
MOST_POINTS_OF_A_SEED = 100


def write_report(summary: Summary, path: Path, paper_minutes: Mapping[str, float] | None = None) -> Path:
    """Write the report of a summary, and its tables as Markdown beside it.

    `paper_minutes` are the run times per seed that the paper gives, by method.
    """
    page = files("cones.experiments").joinpath("report.html").read_text()
    title = summary.experiment.get("title") or summary.experiment["name"]
    parts = {
        "TITLE": html.escape(title),
        "DATA": json.dumps(_data(summary)).replace("<", "\\u003c"),
        "CHARTS": "".join(
            f'<h2>{html.escape(title.capitalize())}</h2>\n<div class="charts" id="{name}"></div>\n'
            for name, (_, title) in figures_of(summary).items()
        ),
        "ENDS": end_table(summary).as_html(),
        "TIMES": time_table(summary, paper_minutes).as_html(),
        "NOTES": _notes(summary),
        "SPECIFICATION": html.escape(json.dumps(summary.experiment, indent=2)),
        "ENVIRONMENT": html.escape(json.dumps(summary.environments, indent=2)),
    }
    # In one pass, so that what is filled in is not searched for places to fill.
    page = re.sub(r"<!--([A-Z]+)-->", lambda match: parts[match[1]], page)
    with atomic_write(path) as file:
        file.write(page.encode())
    tables = [end_table(summary).as_markdown(), time_table(summary, paper_minutes).as_markdown()]
    if summary.notes:
        tables.append("".join(f"- {markdown(note)}\n" for note in summary.notes))
    with atomic_write(path.with_name("tables.md")) as file:
        file.write("\n".join(tables).encode())
    return path


def _data(summary: Summary) -> dict[str, Any]:
    """Curves thinned to what a screen can show, for the page's script."""
    methods = summary.methods
    charts = []
    for name, (column, title) in figures_of(summary).items():
        for problem in summary.problems:
            groups = summary.of(problem)
            lines = []
            for group in groups:
                x, mean, deviation = group.curve(column)
                if not group.ends_together:
                    x, mean, deviation = x[:0], mean[:0], deviation[:0]
                kept = _kept(x.size, MOST_POINTS)
                lines.append(
                    {
                        "method": group.method,
                        "seeds": len(group.records),
                        "x": _numbers(x[kept]),
                        "mean": _numbers(mean[kept]),
                        "deviation": _numbers(deviation[kept]),
                        "band": len(group.records) >= FEW_SEEDS,
                        "each": [_thinned(*seed) for seed in group.seed_curves(column)]
                        if seeds_shown(summary, group)
                        else [],
                    }
                )
            means = [group.curve(column)[1] for group in groups]
            log = not summary.on_tasks and wants_log(means)
            charts.append(
                {
                    "figure": name,
                    "title": problem,
                    "x": groups[0].axis,
                    "y": title,
                    "log": log,
                    "floor": log_floor(means) if log else None,
                    "target": groups[0].target,
                    "lines": lines,
                }
            )
    return {"methods": [{"name": name, "colour": colour_of(name, methods)} for name in methods], "charts": charts}


def _kept(size: int, most: int) -> Any:
    """Indices of at most so many points, evenly spread."""
    return np.unique(np.linspace(0, size - 1, min(most, size)).round().astype(int))


def _thinned(x: Vector, y: Vector) -> list[list[float | None]]:
    kept = _kept(x.size, MOST_POINTS_OF_A_SEED)
    return [_numbers(x[kept]), _numbers(y[kept])]


def _numbers(values: Vector) -> list[float | None]:
    return [float(f"{value:.6g}") if math.isfinite(value) else None for value in values]


def _notes(summary: Summary) -> str:
    if not summary.notes:
        return "<p>All runs are complete as declared below.</p>"
    return "<ul>" + "".join(f"<li>{html.escape(note)}</li>" for note in summary.notes) + "</ul>"
