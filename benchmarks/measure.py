"""Timing of calls that take turns, and tables."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version

__all__ = ["environment", "side_by_side", "table", "taking_turns", "verdict"]


def side_by_side(
    calls: Sequence[Callable[[], object]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Seconds of each call, the least of many. The calls take turns, so that a busy machine slows all of them.

    `time.process_time` as the clock adds up the seconds of all cores.
    """
    return [min(record) for record in taking_turns(calls, rounds, clock)]


def taking_turns(
    calls: Sequence[Callable[[], object]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> list[list[float]]:
    """Seconds of each call in each round."""
    times: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()  # warm up
    for _ in range(rounds):
        for record, call in zip(times, calls, strict=True):
            begin = clock()
            call()
            record.append(clock() - begin)
    return times


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    rule = "| " + " | ".join("-" * width for width in widths) + " |"
    return "\n".join([f"### {title}", "", line(head), rule, *map(line, rows), ""])


def verdict(met: bool) -> str:
    return "met" if met else "NOT MET"


def environment(packages: Sequence[str]) -> str:
    """Versions and cores that the numbers belong to."""
    versions = []
    for package in packages:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            versions.append(f"{package} not installed")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"Python {platform.python_version()}, {platform.machine()}, {cores} cores; {', '.join(versions)}"
