"""A program as the objective: it reads a candidate as JSON and prints the loss."""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
import subprocess
import tempfile
from contextlib import ExitStack
from typing import IO, Any

import numpy as np

from cones.cli.program import LinesSoFar, kill_program
from cones.errors import ConesError, InputError
from cones.evaluate.race import Race
from cones.types import Vector

__all__ = ["CommandObjective", "ProgramError", "plain_values"]

TAIL = 2**16  # bytes at the end of the output that are read to find the last line
LOOK_SECONDS = 0.05  # between looks for losses so far


class ProgramError(ConesError):
    """A program that gave no loss."""


class CommandObjective:
    """Run a command for each candidate. It runs in worker processes: a program ends with the worker that started it.

    Args:
        command: split as a shell does. `{input}` stands for the path of a file with the candidate as a JSON array;
            without it, standard input has the array.
        folder: where these files are written. One is left behind by a worker that is ended.
    """

    def __init__(self, command: str, folder: str) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise InputError(f"--command: {error}, in {command!r}") from None
        if not self._words:
            raise InputError("--command: expected a program, got an empty string")
        if shutil.which(self._words[0]) is None:
            raise InputError(f"--command: no executable program {self._words[0]!r}")
        self._by_file = any("{input}" in word for word in self._words)
        self._folder = folder
        self.__module__, self.__qualname__ = "command", command  # its name in a checkpoint

    def __call__(self, x: Vector | dict[str, Any], race: Race | None = None) -> float:
        text = json.dumps(plain_values(x))
        if not self._by_file:
            return _loss(self._words, text, race)
        with tempfile.NamedTemporaryFile("w", suffix=".json", dir=self._folder) as file:
            file.write(text)
            file.flush()
            return _loss([word.replace("{input}", file.name) for word in self._words], "", race)


def plain_values(x: Any) -> Any:
    """A candidate for JSON: an array as a list of numbers, values by name as an object."""
    if isinstance(x, dict):
        return {name: plain_values(value) for name, value in x.items()}
    return x.tolist() if isinstance(x, np.ndarray) else x


def _loss(words: list[str], text: str, race: Race | None) -> float:
    # Files, not pipes: reading a pipe would wait for processes that the program leaves in the background.
    with ExitStack() as stack:
        given, out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        given.write(text.encode())
        given.seek(0)
        try:
            process = stack.enter_context(subprocess.Popen(words, stdin=given, stdout=out, stderr=err))
        except OSError as error:
            raise ProgramError(f"the program could not be started ({error.strerror})") from None
        try:
            code = process.wait() if race is None else _wait(process, race, LinesSoFar(out.fileno()))
        except BaseException:
            kill_program(process)
            raise
        if race is not None and race.ended:
            return race.loss
        line, reason = _last_line(out), _last_line(err)
    if code != 0:
        raise ProgramError(f"the program ended with exit code {code}{f': {reason}' if reason else ''}")
    try:
        loss = float(line)
    except ValueError:
        raise ProgramError(f"the last line of output is not a number: {line[:80]!r}") from None
    if math.isnan(loss):
        raise ProgramError("the program printed nan")
    return loss


def _wait(process: subprocess.Popen[bytes], race: Race, lines: LinesSoFar) -> int:
    """The exit code of a program, which is ended when its race is over."""
    while True:
        try:
            return process.wait(LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            if any(race.is_over(loss, done) for loss, done in lines.new()):
                kill_program(process)
                return process.wait()


def _last_line(file: IO[bytes]) -> str:
    """The last line that is not empty."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
    lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else ""
