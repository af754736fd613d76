"""The records as a table: median evaluations to the target, or where most runs miss it, the median best loss."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["records", "summary", "table"]


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in sorted(folder.glob("*.jsonl")) for line in file.read_text().splitlines()]


def summary(folder: Path) -> dict[str, dict[str, tuple[float, float, int]]]:
    """By problem and method: median evaluations to the target (inf if most runs missed it), median best, runs."""
    by: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in records(folder):
        by[row["problem"], row["method"]].append(row)
    found: dict[str, dict[str, tuple[float, float, int]]] = {}
    for (problem, method), rows in by.items():
        hits = [np.inf if row["hit"] is None else row["hit"] for row in rows]
        best = float(np.median([row["best"] for row in rows]))
        found.setdefault(problem, {})[method] = (float(np.median(hits)), best, len(rows))
    return found


def table(folder: Path) -> str:
    found = summary(folder)
    methods = sorted({method for row in found.values() for method in row}, key=lambda name: (name != "cones", name))
    lines = ["| | " + " | ".join(methods) + " |", "| --- " * (len(methods) + 1) + "|"]
    for problem, row in sorted(found.items()):
        cells = []
        for method in methods:
            hit, best, _ = row.get(method, (np.nan, np.nan, 0))
            cells.append("" if np.isnan(best) else f"{hit:.0f}" if np.isfinite(hit) else f"({best:.4g})")
        lines.append(f"| {problem} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
