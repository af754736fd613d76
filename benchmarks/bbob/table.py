"""Tables of a folder of records, in Markdown."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby
from math import inf, isnan, nan
from pathlib import Path

from benchmarks.bbob.records import Record, read_records
from benchmarks.bbob.reference import is_reference, reference
from benchmarks.bbob.statistics import (
    SMOOTH,
    area,
    common,
    evaluations_to_last,
    ratios,
    restricted,
    share,
    summary_of_ratios,
)
from benchmarks.measure import table

__all__ = ["function_table", "grouped", "ratio_table", "summary_table", "tables"]


def tables(
    folder: Path,
    labels: Sequence[str] | None = None,
    *,
    against: str = "pycma",
    functions: Collection[int] | None = None,
    instances: Collection[int] | None = None,
    by_function: bool = False,
) -> str:
    """All tables of a folder, per suite and dimension.

    Args:
        labels: methods, in this order; all by default.
        against: the method that the others are compared with.
        functions, instances: only these.
        by_function: add a table with a row per function.
    """
    parts = []
    for (suite, dimension), records in grouped(folder, labels, against).items():
        chosen = [_selected(record, functions, instances) for record in records]
        title = f"{suite}, {dimension}-D, {chosen[0].budget} n evaluations"
        parts.append(summary_table(title, chosen, against))
        if suite == "bbob":
            parts.append(ratio_table(f"{title}: evaluations to 1e-8 as ratio to {against}", chosen, against))
        if by_function:
            parts.append(function_table(f"{title}: area / share by function", chosen))
    return "\n".join(part for part in parts if part)


def grouped(folder: Path, labels: Sequence[str] | None, against: str) -> dict[tuple[str, int], list[Record]]:
    """Records by suite and dimension: in the order of the labels, the reference of COCO last."""
    records = read_records(folder, None if labels is None else [*labels, against])
    order = list(labels or [])
    found = {}
    for (suite, dimension), some in groupby(
        sorted(records, key=lambda r: (r.suite, r.dimension)), key=lambda r: (r.suite, r.dimension)
    ):
        group = sorted(some, key=lambda r: (order.index(r.label) if r.label in order else len(order), r.label))
        problems = sorted({key for record in group for key in record.runs})
        best = reference(suite, dimension, group[0].budget, problems)
        found[suite, dimension] = [*group, best] if best else group
    return found


def summary_table(title: str, records: Sequence[Record], against: str) -> str:
    """Share and area of each method, and both compared with another on the problems that both have."""
    base = next((record for record in records if record.label == against), None)
    rows = []
    for record in records:
        row = [record.label, str(len(record.runs)), _number(share(record)), _number(area(record))]
        if base is not None:
            mine, theirs = common(record, base)
            comparable = mine.runs and record.budget == base.budget
            more, times = share(mine) - share(theirs), area(mine) / area(theirs) if area(theirs) else nan
            row += [f"{more:+.3f}", f"{times:.2f}"] if comparable else ["-", "-"]
        seconds = sum(run.seconds for run in record.runs.values())
        evaluations = sum(run.evaluations for run in record.runs.values())
        row.append(f"{1e6 * seconds / evaluations:.0f}" if seconds else "-")
        rows.append(row)
    head = ["method", "problems", "share", "area"]
    head += [f"share - {against}", f"area / {against}"] if base is not None else []
    return table(title, [*head, "µs per evaluation"], rows)


def ratio_table(title: str, records: Sequence[Record], against: str) -> str:
    """Evaluations to 1e-8 on functions with one minimum, as ratio to another method. Empty without that method."""
    base = next((record for record in records if record.label == against), None)
    others = [record for record in records if record is not base and not is_reference(record)]
    functions = [f for f in SMOOTH if base is not None and any(key[0] == f for key in base.runs)]
    if base is None or not others or not functions:
        return ""
    found = [ratios(record, base, functions) for record in others]
    rows = []
    for function in functions:
        evaluations = evaluations_to_last(base, function) / base.dimension
        rows.append([f"f{function}", _short(evaluations), *(_short(column[function]) for column in found)])
    summaries = [summary_of_ratios(column) for column in found]
    rows.append(["median", "", *(_short(middle) for middle, _ in summaries)])
    rows.append(["largest", "", *(_short(largest) for _, largest in summaries)])
    return table(title, ["", f"{against}, evaluations / n", *(record.label for record in others)], rows)


def function_table(title: str, records: Sequence[Record]) -> str:
    """Area and share of each method, per function."""
    rows = []
    for function in sorted({key[0] for record in records for key in record.runs}):
        some = [restricted(record, [key for key in record.runs if key[0] == function]) for record in records]
        rows.append([f"f{function}", *(f"{_number(area(r))} / {_number(share(r))}" for r in some)])
    return table(title, ["", *(record.label for record in records)], rows)


def _selected(record: Record, functions: Collection[int] | None, instances: Collection[int] | None) -> Record:
    return restricted(
        record,
        [
            (function, instance)
            for function, instance in record.runs
            if (functions is None or function in functions) and (instances is None or instance in instances)
        ],
    )


def _number(value: float) -> str:
    return "-" if isnan(value) else f"{value:.3f}"


def _short(value: float) -> str:
    """Two decimals below 10. A hyphen: neither solves it. ∞: only the other does."""
    if isnan(value):
        return "-"
    return "∞" if value == inf else f"{value:.2f}" if value < 10 else f"{value:.0f}"
