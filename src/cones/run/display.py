"""Progress on the terminal."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import TextIO

from cones.progress.stopping import share_spent
from cones.strategy import Strategy

__all__ = ["ProgressLine", "describe", "duration"]


class ProgressLine:
    """Progress: on a terminal, a line that is rewritten in place; otherwise, a new line every ten seconds."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream.isatty()
        self._interval = 0.1 if self._terminal else 10.0
        self._next = 0.0
        self._width = 0

    def update(self, strategy: Strategy) -> None:
        self.show(lambda: self._of(strategy))

    def show(self, text: Callable[[], str]) -> None:
        """Show a text if the interval has passed; `text` is called only then."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self._interval
            self._write(text())

    def finish(self, strategy: Strategy, message: str) -> None:
        """Write the last line and the reason for the stop."""
        self._write(self._of(strategy))
        self.close()
        self._stream.write(f"{message}\n")
        self._stream.flush()

    def close(self) -> None:
        """End the line, so that other output starts on a new one."""
        if self._terminal and self._width:
            self._stream.write("\n")
            self._stream.flush()
            self._width = 0

    def _of(self, strategy: Strategy) -> str:
        return describe(strategy, self._columns() if self._terminal else None)

    @staticmethod
    def _columns() -> int:
        return shutil.get_terminal_size().columns - 1  # a line that wraps cannot be rewritten

    def _write(self, text: str) -> None:
        if self._terminal:
            text = text[: self._columns()]
            self._stream.write("\r" + text.ljust(self._width))
            self._width = len(text)
        else:
            self._stream.write(text + "\n")
        self._stream.flush()


def describe(strategy: Strategy, columns: int | None = None) -> str:
    """The progress of a run in one line. The last parts are left out where it would have more than `columns`."""
    state = strategy.state
    if state.iteration == 0:
        return f"{strategy.method}: starting"
    mean, spread = (float(strategy.history.last(name, 1)[0]) for name in ("mean_loss", "spread"))
    share = fraction_done(strategy)
    left = f", <{duration(state.seconds * (1.0 - share) / share)} left" if 0.0 < share < 0.995 else ""
    parts = [
        f"{strategy.method} {100.0 * share:.0f}%{left}" if share else strategy.method,
        f"best {state.best_fun:.5g}",
        f"mean {mean:.5g}",
        f"{state.evaluations} evals",
        duration(state.seconds),
        f"iteration {state.iteration}",
        f"spread {spread:.2g}",
    ]
    while columns is not None and len(parts) > 1 and len("  ".join(parts)) > columns:
        del parts[-1]
    return "  ".join(parts)


def fraction_done(strategy: Strategy) -> float:
    """The largest spent share of any budget."""
    return share_spent(strategy.criteria, strategy.state)


def duration(seconds: float) -> str:
    """Seconds as text, such as 2h05m."""
    if seconds < 60.0:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{rest:02}s"
