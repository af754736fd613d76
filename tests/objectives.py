"""Objectives that fail in all the ways there are. Here, where worker processes can import them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np


def loss(x: np.ndarray) -> float:
    return float(((x - 1.0) ** 2).sum())


def slow_loss(x: np.ndarray) -> float:
    time.sleep(0.02)
    return loss(x)


def hangs(x: np.ndarray) -> float:
    time.sleep(3.0)
    return 0.0


def hangs_with_a_program(x: np.ndarray, folder: str) -> float:
    program = subprocess.Popen(["sleep", "300"])
    Path(folder, "program").write_text(str(program.pid))
    return float(program.wait())


class Fails:
    """Does something bad the first `times` times that the loss is in a range; how often is counted in files."""

    def __init__(self, how: str, folder: Path, times: int = 1, low: float = 3.0, high: float = 6.0) -> None:
        self.how, self.folder, self.times, self.low, self.high = how, str(folder), times, low, high

    def __call__(self, x: np.ndarray) -> float:
        value = loss(x)
        if self.low <= value <= self.high and self._turn() < self.times:
            if self.how == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.how == "hang":
                time.sleep(3600.0)
            raise ZeroDivisionError("boom")
        return value

    def _turn(self) -> int:
        """How often it came to this before, in whatever process."""
        for turn in range(10**6):
            try:
                os.close(os.open(os.path.join(self.folder, str(turn)), os.O_CREAT | os.O_EXCL))
                return turn
            except FileExistsError:
                continue
        raise AssertionError


class DiesOnArrival:
    """Kills the first processes that it is sent to, before they can call it."""

    def __init__(self, folder: Path, times: int) -> None:
        self.folder, self.times = str(folder), times

    def __reduce__(self) -> Any:
        return _arrived, (self.folder, self.times)

    def __call__(self, x: np.ndarray) -> float:
        return loss(x)


def _arrived(folder: str, times: int) -> DiesOnArrival:
    if Fails("die", Path(folder))._turn() < times:
        os.kill(os.getpid(), signal.SIGKILL)
    return DiesOnArrival(Path(folder), times)
