"""The journal of a run: one line per event, from which an asynchronous run can be replayed bit for bit.

A run by ask and tell is a function of its settings and of what was asked and told in which order. Candidates can be
drawn again from their numbers, so that the journal holds numbers and losses, and no candidates but foreign ones:

    ["ask", 2]    ["tell", [[0, 1]], [3.25]]    ["known", [[0.5, 0.5]], [0.25]]    ["again"]    ...

Each line is on its way to the disk before the belief moves: a process that is killed loses no evaluation.
"""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from cones.errors import CheckpointError, InputError
from cones.files import check_path
from cones.incremental import IncrementalStrategy
from cones.strategy import Strategy

__all__ = ["Journal", "events_of", "replay", "replay_events"]

FORMAT = ["cones journal", 1]


class Journal:
    """Writes the events of a strategy to a file: `es.journal = cones.Journal("run.journal")`.

    Args:
        path: the file. An existing one is replaced, unless `after` is given.
        after: continue the file after this many events.

    Example:
        >>> import cones, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "run.journal")
        >>> es = cones.CoNES([1.0, 2.0], rng=0)
        >>> es.journal = cones.Journal(path)
        >>> x = es.ask(1)
        >>> es.tell(x, [5.0])
        >>> again = cones.replay(path, cones.CoNES([1.0, 2.0], rng=0))
        >>> again.result.fun
        5.0
    """

    def __init__(self, path: str | PathLike[str], after: int | None = None) -> None:
        check_path("path", path)
        self.count = after or 0
        header = (json.dumps(FORMAT) + "\n").encode()
        if after is None or not Path(path).exists():
            self._file = open(path, "wb", buffering=0)  # noqa: SIM115 - it stays open as long as the run
            self._file.write(header)
        else:
            lines = Path(path).read_bytes().split(b"\n")[: after + 1]
            self._file = open(path, "r+b", buffering=0)  # noqa: SIM115
            self._file.truncate(sum(len(line) + 1 for line in lines))  # a last line that was cut off is not continued
            self._file.seek(0, os.SEEK_END)
        self.close = weakref.finalize(self, self._file.close)

    def __call__(self, kind: str, *content: Any) -> None:
        self._file.write((json.dumps([kind, *content]) + "\n").encode())
        self.count += 1


def events_of(path: str | PathLike[str]) -> list[list[Any]]:
    """The events of a journal. A last line that was cut off is left out."""
    check_path("path", path)
    try:
        text = Path(path).read_text(encoding="utf-8")
        lines = text.split("\n")[:-1]
        header, *events = [json.loads(line) for line in lines]
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: not a cones journal ({error})") from None
    if header != FORMAT:
        raise CheckpointError(f"{path}: expected a cones journal of version {FORMAT[1]}, got {header!r:.80}")
    return events


def replay(path: str | PathLike[str], strategy: Strategy) -> Strategy:
    """Tell a strategy that has just begun the events of a journal. Returns the strategy, as it was at the last of them.

    Args:
        path: the journal.
        strategy: made with the settings and the seed of the run.
    """
    if not isinstance(strategy, IncrementalStrategy):
        raise InputError(f"strategy: expected one of ES, NES or CoNES, got {type(strategy).__name__}")
    if strategy.state.iteration or strategy.state.evaluations:
        raise InputError(
            f"strategy: expected one that has just begun, got one after {strategy.state.evaluations} evaluations"
        )
    return replay_events(events_of(path), strategy, path)


def replay_events(
    events: Iterable[list[Any]], strategy: IncrementalStrategy, path: str | PathLike[str]
) -> IncrementalStrategy:
    """Tell a strategy events that follow what it knows."""
    for index, event in enumerate(events):
        try:
            _replay_one(strategy, *event)
        except (InputError, TypeError, KeyError, ValueError, IndexError) as error:
            raise CheckpointError(f"{path}: event {index} does not fit the strategy ({error})") from error
    return strategy


def _replay_one(strategy: IncrementalStrategy, kind: str, *content: Any) -> None:
    if kind == "ask":
        strategy.ask(*content)
    elif kind == "tell":
        identities, losses = content
        strategy.tell_identified([(number, index) for number, index in identities], np.array(losses, np.float64))
    elif kind == "known":
        strategy.tell_known(*content)
    elif kind == "again":
        strategy.ask_again()
    elif kind == "adopt":
        strategy.ask()
        strategy.adopt()
    elif kind == "whole":
        strategy.tell(strategy.ask(), *content)
    elif kind == "start":
        strategy.tell_start(*content)
    else:
        raise ValueError(f"unknown kind {kind!r:.40}")
