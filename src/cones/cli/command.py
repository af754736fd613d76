"""A program as the objective: it reads a candidate as JSON and prints the loss."""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
from contextlib import ExitStack, suppress
from typing import IO, Any

from cones.errors import InputError
from cones.types import Vector

__all__ = ["CommandObjective"]

TAIL = 2**16  # bytes at the end of the output that are read to find the last line


class CommandObjective:
    """Run a command for each candidate. A failure is a NaN loss, and is counted. Safe to call from several threads.

    Args:
        command: split as a shell does. `{input}` stands for the path of a file with the candidate as a JSON array;
            without it, standard input has the array.
        timeout: limit in seconds for one candidate.
    """

    def __init__(self, command: str, timeout: float | None = None) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise InputError(f"--command: {error}, in {command!r}") from None
        if not self._words:
            raise InputError("--command: expected a program, got an empty string")
        if shutil.which(self._words[0]) is None:
            raise InputError(f"--command: no executable program {self._words[0]!r}")
        self._by_file = any("{input}" in word for word in self._words)
        self._timeout = timeout
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._killed = False
        self._count, self._example = 0, ""

    def __call__(self, x: Vector) -> float:
        text = json.dumps([float(value) for value in x])
        if not self._by_file:
            return self._loss(self._words, text)
        with tempfile.NamedTemporaryFile("w", prefix="cones-", suffix=".json") as file:
            file.write(text)
            file.flush()
            return self._loss([word.replace("{input}", file.name) for word in self._words], "")

    def _loss(self, words: list[str], text: str) -> float:
        # Files, not pipes: reading a pipe would wait for processes that the program leaves in the background.
        with ExitStack() as stack:
            given, out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
            given.write(text.encode())
            given.seek(0)
            try:
                # A new session: Ctrl-C does not reach the program, and killing the session ends its children.
                process = subprocess.Popen(words, stdin=given, stdout=out, stderr=err, start_new_session=True)
            except OSError as error:
                return self._failed(f"the program could not be started ({error.strerror})")
            if not self._ended(process):
                return self._failed(f"the program exceeded the timeout of {self._timeout:g} s")
            line, reason, code = _last_line(out), _last_line(err), process.returncode
            if code != 0:
                return self._failed(f"the program ended with exit code {code}{f': {reason}' if reason else ''}")
        try:
            loss = float(line)
        except ValueError:
            return self._failed(f"the last line of output is not a number: {line[:80]!r}")
        return self._failed("the program printed nan") if math.isnan(loss) else loss

    def _ended(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait for the program; False if it exceeded the timeout and was killed."""
        with self._lock:
            self._running.add(process)
            killed = self._killed
        if killed:
            _kill(process)
        try:
            process.wait(self._timeout)
            return True
        except subprocess.TimeoutExpired:
            _kill(process)
            process.wait()
            return False
        finally:
            with self._lock:
                self._running.discard(process)

    def _failed(self, message: str) -> float:
        with self._lock:
            if not self._killed:
                self._count += 1
                self._example = message
        return math.nan

    def failures(self) -> dict[str, Any]:
        """Number of failed evaluations, and the message of the last one."""
        return {"count": self._count, "example": self._example} if self._count else {"count": 0}

    def kill(self) -> None:
        """Kill all running programs."""
        with self._lock:
            self._killed = True
            running = list(self._running)
        for process in running:
            _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _last_line(file: IO[bytes]) -> str:
    """The last line that is not empty."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
    lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else ""
