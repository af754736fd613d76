"""The records as tables: evaluations to a target, losses at the end, and losses when TPE had spent its budget."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["beside_tpe", "pipelines", "records", "summary", "table"]


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in sorted(folder.glob("*.jsonl")) for line in file.read_text().splitlines()]


def _by_problem(folder: Path) -> dict[str, dict[str, list[dict[str, Any]]]]:
    found: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in records(folder):
        found[row["problem"]][row["method"]].append(row)
    return dict(sorted(found.items(), key=lambda pair: _key(pair[0])))


def _key(problem: str) -> tuple[str, int]:
    """By name, then by size: 100 before 1000."""
    name, _, size = problem.partition(" ")
    return name, int(size.split("+")[0]) if size else 0


def summary(folder: Path) -> dict[str, dict[str, tuple[float, float, int]]]:
    """By problem and method: median evaluations to the target (inf if most runs missed it), median best, runs."""
    return {
        problem: {
            method: (
                float(np.median([np.inf if row["hit"] is None else row["hit"] for row in rows])),
                float(np.median([row["best"] for row in rows])),
                len(rows),
            )
            for method, rows in by_method.items()
        }
        for problem, by_method in _by_problem(folder).items()
    }


def table(folder: Path) -> str:
    """Median evaluations to the target or, in brackets, the median loss at the end. TPE has a smaller budget."""
    found = summary(folder)
    methods = sorted({method for row in found.values() for method in row} - {"tpe"}, key=lambda m: (m != "cones", m))
    lines = ["| | " + " | ".join(methods) + " |", "| --- " * (len(methods) + 1) + "|"]
    for problem, row in found.items():
        cells = []
        for method in methods:
            hit, best, _ = row.get(method, (np.nan, np.nan, 0))
            cells.append("" if np.isnan(best) else f"{hit:.0f}" if np.isfinite(hit) else f"({best:.4g})")
        lines.append(f"| {problem} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def beside_tpe(folder: Path) -> str:
    """The median loss after as many evaluations as TPE was given."""
    lines = ["| | evaluations | cones | tpe |", "| --- | --- | --- | --- |"]
    for problem, rows in _by_problem(folder).items():
        if "tpe" in rows:
            budget = rows["tpe"][0]["budget"]
            ours, theirs = (np.median([_after(row, budget) for row in rows[name]]) for name in ("cones", "tpe"))
            lines.append(f"| {problem} | {budget} | {ours:.4g} | {theirs:.4g} |")
    return "\n".join(lines)


def _after(row: dict[str, Any], count: int) -> float:
    """The best loss after some evaluations, of which the improvements are kept: at least what is shown."""
    return float(min(loss for at, loss in row["improvements"] if at <= count))


def pipelines(folder: Path) -> str:
    """Mean, median and worst of the best losses, by pipeline and method."""
    lines = ["| | runs | mean | median | worst |", "| --- | --- | --- | --- | --- |"]
    for problem, rows in _by_problem(folder).items():
        for method in ("cones", "tpe"):
            if best := [row["best"] for row in rows[method]]:
                numbers = " | ".join(f"{number:.4g}" for number in (np.mean(best), np.median(best), np.max(best)))
                lines.append(f"| {problem}, {method} | {len(best)} | {numbers} |")
    return "\n".join(lines)
