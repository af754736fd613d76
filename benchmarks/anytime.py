"""What a run has to show before its end: `python -m benchmarks.anytime results/adaptive [COLUMN]`.

For every problem of an experiment, the mean loss of the population at parts of the budget, the mean over seeds, and the
lowest of the other methods there. The last row counts the problems on which the first method is behind. COLUMN is
another column of the records: `best`, the lowest loss so far, or `loss_at_mean`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from cones.experiments.spec import Experiment
from cones.records.folder import Folder
from cones.records.problem import ProblemSpec

PARTS = (0.05, 0.1, 0.3, 0.6, 1.0)

__all__ = ["PARTS", "losses", "table"]


def losses(folder: str | Path, column: str = "mean_loss") -> dict[str, dict[str, np.ndarray]]:
    """The mean loss, or another column, at `PARTS` of the budget, by problem and method, in the experiment's order."""
    place = Folder(folder)
    experiment = Experiment.from_specification(place.experiment())
    seen: dict[str, dict[str, list[list[float]]]] = {
        problem.label: {method.label: [] for method in experiment.methods} for problem in experiment.problems
    }
    for record in place.records():
        evaluations = np.asarray(record.columns["evaluations"], float)
        values = np.asarray(record.columns[column], float)
        budget = float(record.run["maxfev"])
        at = [max(0, int(np.searchsorted(evaluations, part * budget, side="right")) - 1) for part in PARTS]
        label = ProblemSpec(**record.run["problem"]).label
        seen[label][record.run["label"]].append([float(values[k]) for k in at])
    return {
        problem: {method: np.mean(rows, axis=0) for method, rows in by_method.items() if rows}
        for problem, by_method in seen.items()
    }


def table(folder: str | Path, column: str = "mean_loss") -> str:
    """Markdown: the first method / the lowest of the others, marked where it is behind."""
    found = losses(folder, column)
    first = next(iter(next(iter(found.values()))))
    rows = [[f"{first} / best of the others", *(f"{part:.0%}" for part in PARTS)]]
    rows.append(["---"] * len(rows[0]))
    behind = np.zeros(len(PARTS), int)
    for problem, by_method in found.items():
        mine = by_method[first]
        best = np.min([values for name, values in by_method.items() if name != first], axis=0)
        behind += mine > best
        cells = [f"{a:.3g} / {b:.3g}{' (behind)' if a > b else ''}" for a, b in zip(mine, best, strict=True)]
        rows.append([problem, *cells])
    rows.append(["behind on", *map(str, behind)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


if __name__ == "__main__":
    print(table(*sys.argv[1:3]))
