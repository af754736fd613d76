"""Progress in a notebook: a bar that is redrawn in place."""

from __future__ import annotations

import sys
import time
from html import escape
from importlib import import_module
from typing import Any

from cones.run.display import describe, fraction_done
from cones.strategy import Strategy

__all__ = ["NotebookProgress", "in_notebook"]

INTERVAL = 0.2  # seconds; a page takes longer to redraw than a terminal


def in_notebook() -> bool:
    """True if the code runs in a kernel of Jupyter, which shows HTML; not in a terminal, IPython's included."""
    ipython = sys.modules.get("IPython")
    return hasattr(ipython.get_ipython(), "kernel") if ipython is not None else False


class NotebookProgress:
    """A bar and the line that terminals have, with the same methods as `ProgressLine`."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._next = 0.0

    def update(self, strategy: Strategy) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + INTERVAL
            self._draw(strategy)

    def finish(self, strategy: Strategy, message: str) -> None:
        """Draw the end of the run and the reason for the stop."""
        self._draw(strategy, message)

    def close(self) -> None:
        """Nothing to end: the output belongs to the cell."""

    def _draw(self, strategy: Strategy, message: str = "") -> None:
        notebook: Any = import_module("IPython.display")  # without types
        share = fraction_done(strategy)
        bar = f'<progress value="{share:.4f}" max="1" style="width:16em"></progress> ' if share else ""
        last = f"<div>{escape(message)}</div>" if message else ""
        drawn = notebook.HTML(f'<div style="font-size:13px">{bar}{escape(describe(strategy))}{last}</div>')
        if self._handle is None:
            self._handle = notebook.display(drawn, display_id=True)
        else:
            self._handle.update(drawn)
