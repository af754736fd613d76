"""Runs that are killed by SIGKILL again and again, and started again by the same command.

Every killed run must end with the numbers of one that was left alone, bit for bit.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from benchmarks.attack import Row
from benchmarks.attack.victim import KINDS, numbers

__all__ = ["KINDS", "campaign"]

KILLS_PER_RUN = 5
LONGEST = 120.0  # seconds that one start may take


def campaign(count: int, rng: np.random.Generator, kinds: tuple[str, ...] = KINDS) -> list[Row]:
    """`count` kills, spread over `minimize`, its command, the runs of an experiment, and training."""
    return [_killed(kind, count // len(kinds), rng) for kind in kinds]


def _killed(kind: str, count: int, rng: np.random.Generator) -> Row:
    kills = failures = runs = 0
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder, "whole")
        seconds = _finished(kind, whole)
        expected = numbers(kind, whole)
        while kills < count:
            killed = Path(folder, f"killed-{runs}")
            runs += 1
            for _ in range(min(KILLS_PER_RUN, count - kills)):
                kills += _kill_one(kind, killed, float(rng.uniform(0.1, 0.9)) * seconds, rng.random() < 0.5)
            try:
                _finished(kind, killed)
                failures += numbers(kind, killed) != expected or bool(list(killed.rglob("*.part")))
            except (OSError, ValueError, subprocess.SubprocessError):
                failures += 1
    return Row(f"SIGKILL: {kind}", kills, failures)


def _started(kind: str, folder: Path) -> subprocess.Popen[bytes]:
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "benchmarks.attack.victim", kind, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def _finished(kind: str, folder: Path) -> float:
    """Run to the end; the seconds that it took."""
    begin, process = time.monotonic(), _started(kind, folder)
    try:
        if code := process.wait(LONGEST):
            raise subprocess.CalledProcessError(code, kind)
    finally:
        _kill_all(process)
    return time.monotonic() - begin


def _kill_one(kind: str, folder: Path, seconds: float, with_children: bool) -> int:
    """Kill a run after some seconds, alone or with its processes. Returns 0 if it had ended before."""
    process = _started(kind, folder)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        if with_children:
            _kill_all(process)
        else:
            process.kill()
        process.wait()
        return 1
    return 0


def _kill_all(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
