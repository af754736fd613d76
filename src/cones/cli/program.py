"""A program under way: the losses so far that it prints, and its end with all that it has started."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["LinesSoFar", "kill_program"]

LINE = re.compile(rb"\s*(\S+)\s+(\S+)%\s*")  # such as: 12.5 40%


class LinesSoFar:
    """Lines of a program's output such as "12.5 40%": the loss so far, and how much of the evaluation is done."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._read, self._rest = descriptor, 0, b""

    def new(self) -> Iterator[tuple[float, float]]:
        """Loss and share of the lines that were written since the last call."""
        # The program writes at the file's own position, which pread leaves alone.
        while piece := os.pread(self._descriptor, 2**16, self._read):
            self._read += len(piece)
            *lines, self._rest = (self._rest + piece).split(b"\n")
            for line in lines:
                if found := LINE.fullmatch(line):
                    with suppress(ValueError):
                        yield float(found[1]), float(found[2]) / 100.0


def kill_program(process: subprocess.Popen[bytes]) -> None:
    """End a program and the programs that it has started, where the system tells which these are."""
    for pid in reversed(_with_descendants(process.pid)):
        if pid != process.pid:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
    process.kill()


def _with_descendants(pid: int) -> list[int]:
    found = [pid]
    for parent in found:  # it grows meanwhile
        with suppress(OSError):  # it may end at any moment
            for thread in os.listdir(f"/proc/{parent}/task"):
                with suppress(OSError):
                    children = Path(f"/proc/{parent}/task/{thread}/children").read_text()
                    found += [int(child) for child in children.split()]
    return found
