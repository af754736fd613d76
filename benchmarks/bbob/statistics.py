"""Figures of a record.

Over all pairs of problem and target, with e the evaluations at which the target was first reached, budget b n:

    share  the pairs that are solved
    area   mean of 1 - log10(e/n) / log10(b), at least 0 and at most 1, and 0 where the target was not reached:
           the area under the runtime distribution over log10(e/n) from 0 to log10(b), as a part of the whole

    ratio  evaluations to 1e-8 over those of another method, both medians over instances
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import inf, isnan, log10, nan
from statistics import mean, median

from benchmarks.bbob.records import Record

__all__ = ["SMOOTH", "area", "common", "evaluations_to_last", "ratios", "restricted", "share", "summary_of_ratios"]

# One minimum each, ill-conditioned or curved: what is measured is the speed of a single descent.
SMOOTH = (1, 2, 8, 9, 10, 11, 12, 13, 14)


def restricted(record: Record, problems: Iterable[tuple[int, int]]) -> Record:
    """The record of some problems only, as far as it has them."""
    return Record(record.header, {key: record.runs[key] for key in sorted(problems) if key in record.runs})


def common(first: Record, second: Record) -> tuple[Record, Record]:
    """Both records, of the problems that both have."""
    both = first.runs.keys() & second.runs.keys()
    return restricted(first, both), restricted(second, both)


def share(record: Record) -> float:
    """Share of the pairs of problem and target that are solved."""
    return _mean([hit is not None for run in record.runs.values() for hit in run.hits])


def area(record: Record) -> float:
    """Area under the runtime distribution; see the top of this module."""

    def part(hit: int | None) -> float:
        if hit is None:
            return 0.0
        return min(1.0, max(0.0, 1 - log10(hit / record.dimension) / log10(record.budget)))

    return _mean([part(hit) for run in record.runs.values() for hit in run.hits])


def evaluations_to_last(record: Record, function: int) -> float:
    """Evaluations to the last target, 1e-8: median over the instances, where unsolved is inf."""
    hits = [run.hits[-1] for (f, _), run in record.runs.items() if f == function]
    return float(median([inf if hit is None else float(hit) for hit in hits])) if hits else nan


def ratios(record: Record, other: Record, functions: Collection[int] = SMOOTH) -> dict[int, float]:
    """Evaluations to 1e-8 over those of another method, per function, on the problems that both have.

    inf: only the other solves it. 0: only this one does. NaN: neither does, or there is nothing to compare.
    """
    mine, theirs = common(record, other)
    found = {}
    for function in functions:
        a, b = evaluations_to_last(mine, function), evaluations_to_last(theirs, function)
        found[function] = nan if isnan(a) or (a == b == inf) else a / b
    return found


def summary_of_ratios(found: dict[int, float]) -> tuple[float, float]:
    """Median and largest ratio over the functions, without those that neither method solves."""
    known = [ratio for ratio in found.values() if not isnan(ratio)]
    return (float(median(known)), max(known)) if known else (nan, nan)


def _mean(values: list[float] | list[bool]) -> float:
    return float(mean(map(float, values))) if values else nan
