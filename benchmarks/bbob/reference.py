"""The references that cocopp ships: of each target, the least expected running time of all methods of a year.

The files are read as they are. Importing cocopp would look for its archives on the network and write to the home
folder. A row of a file: expected evaluations, precision twice, the method, its successes, its runs.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from benchmarks.bbob.records import Record, Run, header
from benchmarks.bbob.targets import EXPONENTS, TARGETS

__all__ = ["REFERENCES", "is_reference", "reference"]

REFERENCES = {
    "bbob": ("best2009", "best2009-bbob.tar.gz"),
    "bbob-largescale": ("best2019", "best2019-bbob-largescale.tar.gz"),
}


def reference(suite: str, dimension: int, budget: int, problems: Iterable[tuple[int, int]]) -> Record | None:
    """The reference of a suite as if it were the record of a method, or None without the files of cocopp.

    The expected running times of a function stand for each of its instances.

    Args:
        budget: evaluations per dimension; what takes longer counts as not reached.
        problems: (function, instance) of the record.
    """
    if suite not in REFERENCES:
        return None
    name, file = REFERENCES[suite]
    times = _times(file)
    runs = {}
    for function, instance in problems:
        rows = times.get((function, dimension))
        if rows is None:
            return None
        hits = [_first(rows, exponent) for exponent in EXPONENTS]
        within = [hit if hit is not None and hit <= budget * dimension else None for hit in hits]
        best = min([t for t, hit in zip(TARGETS, within, strict=True) if hit is not None], default=float("inf"))
        runs[function, instance] = Run(within, best, budget * dimension, 0.0)
    return Record(header(name, name, {}, suite, dimension, budget, {}), runs)


def is_reference(record: Record) -> bool:
    """True if the record is not of a method but of the best of many."""
    return record.suite in REFERENCES and record.label == REFERENCES[record.suite][0]


def _first(rows: list[tuple[float, float]], exponent: float) -> int | None:
    """Expected evaluations to the first precision that is not above the target."""
    target = 10.0**exponent * (1 + 1e-9)
    return next((max(1, round(evaluations)) for evaluations, precision in rows if precision <= target), None)


@cache
def _times(file: str) -> dict[tuple[int, int], list[tuple[float, float]]]:
    """(evaluations, precision) by (function, dimension)."""
    spec = find_spec("cocopp")
    if spec is None or spec.origin is None:
        return {}
    path = Path(spec.origin).parent / "refalgs" / file
    if not path.exists():
        return {}
    found = {}
    with tarfile.open(path) as archive:
        for member in archive:
            stem, _, ending = Path(member.name).name.rpartition(".")
            content = archive.extractfile(member) if ending == "tdat" else None
            if content is None:
                continue
            *_, function, dimension = stem.split("_")  # bbob-bestalg_f01_d02
            lines = [line.split() for line in content.read().decode().splitlines() if not line.startswith("%")]
            found[int(function[1:]), int(dimension[1:])] = [(float(line[0]), float(line[1])) for line in lines]
    return found
