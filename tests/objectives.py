"""Objectives that fail in all the ways there are. Here, where worker processes can import them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np


def loss(x: np.ndarray) -> float:
    return float(((x - 1.0) ** 2).sum())


def slow_loss(x: np.ndarray) -> float:
    time.sleep(0.02)
    return loss(x)


def hangs(x: np.ndarray) -> float:
    time.sleep(3.0)
    return 0.0


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
