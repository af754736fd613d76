"""The table of the experiment on kinks: `python -m benchmarks.kinks results/kinks`.

best loss found - minimum, the median over seeds, and the ratio to the lowest median of CMA, SepCMA and NES.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from cones.experiments.spec import Experiment
from cones.records.folder import Folder
from cones.records.problem import ProblemSpec

PEERS = ("CMA", "SepCMA", "NES")

__all__ = ["PEERS", "gaps", "table"]


def gaps(folder: str | Path) -> dict[str, dict[str, list[float]]]:
    """best loss found - minimum of every seed, by problem and method, in the order of the experiment."""
    place = Folder(folder)
    experiment = Experiment.from_specification(place.experiment())
    found: dict[str, dict[str, list[float]]] = {
        problem.label: {method.label: [] for method in experiment.methods} for problem in experiment.problems
    }
    for record in place.records():
        problem = ProblemSpec(**record.run["problem"])
        gap = float(record.columns["best"][-1]) - problem.make().best
        found[problem.label][record.run["label"]].append(gap)
    return found


def table(folder: str | Path) -> str:
    """The medians and the ratios as Markdown."""
    found = gaps(folder)
    methods = list(next(iter(found.values())))
    own = [name for name in methods if name not in PEERS]
    rows = [["", *methods, *(f"{name} / best of the others" for name in own)]]
    rows.append(["---"] * len(rows[0]))
    for problem, by_method in found.items():
        medians = {name: float(np.median(values)) for name, values in by_method.items()}
        best = min(medians[name] for name in PEERS)
        ratios = [f"{medians[name] / best:.2g}" for name in own]
        rows.append([problem, *(f"{value:.2g}" for value in medians.values()), *ratios])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


if __name__ == "__main__":
    print(table(sys.argv[1]))
