"""The parser of all commands: errors in one line, negative numbers as values, and no flag that overwrites another."""

from __future__ import annotations

import argparse
import re
from typing import Any, NoReturn

from cones.component import suggestion

__all__ = ["Once", "OnceBoolean", "Parser"]


class Parser(argparse.ArgumentParser):
    """A parser with one-line errors that reads -1,2 and -1e3 as numbers, not as options.

    A flag with a value may be given once: of two, argparse would silently use the last.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._negative_number_matcher = re.compile(r"^-(\.?\d|inf)")
        self.register("action", None, Once)
        self.register("action", "store", Once)
        self.given: dict[str, str] = {}  # the flags so far, by what they set

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.given = {}
        found, rest = super().parse_known_args(args, namespace)
        if rest:  # refused here, where the flags are known, and not by the parser above
            self.error(f"unknown: {' '.join(rest)}{self._hint(rest)}")
        return found, rest

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"cones: {_in_our_words(message)} (see {self.prog} --help)\n")

    def _hint(self, rest: list[str]) -> str:
        """What to do about arguments that are left over, where that is known."""
        if all(re.fullmatch(r"[-+]?(\.?\d[\d.eE+-]*|inf)", word) for word in rest):
            return "; several numbers are separated by commas, as in 1,2,3"
        if rest[-1].endswith(".ckpt"):
            return "; --resume takes no file, it continues that of --checkpoint"
        return suggestion(rest[0].partition("=")[0], self._option_string_actions)


def _in_our_words(message: str) -> str:
    """A message of argparse as name, expected, received."""
    message = message.removeprefix("argument ")
    if found := re.fullmatch(r"(.*): invalid (int|float) value: (.*)", message):
        return f"{found[1]}: expected {'an integer' if found[2] == 'int' else 'a number'}, got {found[3]}"
    if found := re.fullmatch(r"(.*): invalid choice: (.*) \(choose from (.*)\)", message):
        got, *known = (name.strip("'") for name in (found[2], *found[3].split(", ")))
        return f"{found[1]}: expected one of {', '.join(known)}, got {got!r}{suggestion(got, known)}"
    return message


class _GivenOnce(argparse.Action):
    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        assert isinstance(parser, Parser)
        if option is not None and (before := parser.given.get(self.dest)):
            parser.error(f"{before}: expected once, got {'it twice' if option == before else f'{option} as well'}")
        parser.given[self.dest] = option or ""
        super().__call__(parser, namespace, values, option)


class Once(_GivenOnce, argparse._StoreAction):
    """Store a value; the flag may be given once."""


class OnceBoolean(_GivenOnce, argparse.BooleanOptionalAction):
    """--name and --no-name, of which one may be given."""
