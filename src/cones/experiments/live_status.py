"""The progress of an experiment on the terminal, and its outcome."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Any, TextIO

from cones.experiments.spec import AnyRun
from cones.run.display import duration

__all__ = ["LiveStatus", "Outcome"]


@dataclass
class Outcome:
    """How many runs of an experiment finished, were skipped, were paused or failed."""

    finished: int = 0
    skipped: int = 0
    paused: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def complete(self) -> bool:
        return not self.failed and not self.interrupted


@dataclass
class _Progress:
    """A run in progress."""

    started: float
    begin: float = 0.0
    first: float | None = None
    share: float = 0.0
    headline: str = "starting"

    def left(self) -> str:
        done = self.share - (self.first or 0.0)
        if done <= 0.0:
            return ""
        return f"  {duration((time.monotonic() - self.begin) * (1.0 - self.share) / done)} left"


class LiveStatus:
    """On a terminal a block that is redrawn; elsewhere a line per finished run, and the others every half minute."""

    def __init__(self, total: int, outcome: Outcome, stream: TextIO) -> None:
        self._total, self._outcome, self._stream = total, outcome, stream
        self._terminal = stream.isatty()
        self._begin = time.monotonic()
        self._runs: dict[str, _Progress] = {}
        self._height = 0
        self._drawn = time.monotonic()
        if outcome.skipped:
            self.say(f"{outcome.skipped} of {total} runs are done already")

    def start(self, run: AnyRun) -> None:
        self._runs[run.name] = _Progress(time.monotonic())

    def progress(self, name: str, share: float, headline: str) -> None:
        if (run := self._runs.get(name)) is not None:
            if run.first is None:  # what was done before it was resumed says nothing about its speed
                run.begin, run.first = time.monotonic(), share
            run.share, run.headline = share, headline

    def end(self, name: str, kind: str, message: Any = "", details: Any = "") -> None:
        run = self._runs.pop(name)
        if kind in ("finished", "paused"):
            if kind == "finished":
                self._outcome.finished += 1
            else:
                self._outcome.paused += 1
            taken = duration(time.monotonic() - run.started)
            left = "" if kind == "finished" else "  paused"
            self.say(f"{name}  {run.headline}  {taken}{left}  {self._overall()}")
        elif kind == "failed":
            self._outcome.failed[name] = str(message)
            self.say(f"{name}  FAILED: {message}")
            if details and os.environ.get("CONES_DEBUG"):
                self.say(str(details))

    def _overall(self) -> str:
        done = self._outcome.finished + self._outcome.paused
        left = self._total - self._outcome.skipped - done - len(self._outcome.failed)
        share = done + sum(run.share - (run.first or 0.0) for run in self._runs.values())
        text = f"[{self._outcome.skipped + done}/{self._total}]"
        if left > 0 and share > 0.0:
            rate = (time.monotonic() - self._begin) / share
            text += f" about {duration(rate * max(0.0, done + left - share))} left"
        return text

    def draw(self) -> None:
        if time.monotonic() - self._drawn < (0.2 if self._terminal else 30.0):
            return
        self._drawn = time.monotonic()
        lines = []
        for name, run in self._runs.items():
            bar = "#" * round(20 * run.share)
            lines.append(f"  [{bar:<20}] {name}  {100 * run.share:3.0f}%  {run.headline}{run.left()}")
        lines.append(f"  {self._overall()}")
        if not self._terminal:
            if len(lines) > 1:
                self._stream.write("\n".join(lines) + "\n")
                self._stream.flush()
            return
        self._clear()
        width = os.get_terminal_size(self._stream.fileno()).columns if hasattr(self._stream, "fileno") else 120
        self._stream.write("".join(line[: width - 1] + "\n" for line in lines))
        self._stream.flush()
        self._height = len(lines)

    def say(self, text: str) -> None:
        self._clear()
        self._stream.write(text + "\n")
        self._stream.flush()

    def _clear(self) -> None:
        if self._height:
            self._stream.write(f"\x1b[{self._height}A\x1b[J")
            self._height = 0

    def close(self) -> None:
        self._clear()
        self._stream.flush()
