"""The code blocks of a Markdown page, and how each is run.

A page's Python blocks run in order in one namespace, its bash blocks in between, all in one empty folder. A comment on
the line above a block, or below it, says more:

    <!-- file: NAME -->      the block is the content of a file
    <!-- not run: REASON --> it cannot run here; how many there are is on record in test_pages.py
    <!-- output -->          the block of text is what the block before it prints
    <!-- check: EXPRESSION --> below a block: true after it, in the page's namespace

`python blocks.py PAGE` runs a page in the current folder and prints what its blocks printed and drew, as JSON.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import zip_longest
from math import isclose
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FENCE = re.compile(
    r"^(?P<before><!-- [^\n]*-->\n)?(?P<fence>`{3,}|:{3,})(?P<language>[^\n`]*)\n(?P<code>.*?)^(?P=fence)$"
    r"(?P<after>(?:\n+<!-- check: [^\n]*-->)*)",
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(r"(?<![\w.])[+-]?\d+\.?\d*(?:e[+-]?\d+)?")
RUN_BY_THE_SITE = ("index.md", "tutorials/*.md")  # below docs/: run when the site is built, and shown with outputs
RUN = ("python", "bash", "toml", "json")
SHOWN = ("bibtex", "text")


@dataclass(frozen=True)
class Block:
    """A block of code, what its page says of it, the line that it starts on, and the character after it."""

    page: Path
    line: int
    language: str
    code: str
    end: int
    file: str
    not_run: str
    output: bool
    checks: tuple[str, ...]


def pages() -> list[Path]:
    """All pages that hold code for readers, from the top of the repository."""
    built = ("_build", "_generated")
    return [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "results/README.md")),
        *(path for path in sorted((ROOT / "docs").rglob("*.md")) if not set(path.parts) & set(built)),
    ]


def run_by_the_site() -> list[Path]:
    """The pages that outputs.py runs when the site is built."""
    return [path for pattern in RUN_BY_THE_SITE for path in sorted((ROOT / "docs").glob(pattern))]


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for match in FENCE.finditer(text):
        language = match["language"].strip()
        if language.startswith("{"):
            continue  # a directive of the documentation
        before = (match["before"] or "").strip().removeprefix("<!-- ").removesuffix(" -->")
        kind, _, value = before.partition(": ")
        if before and kind not in ("file", "not run", "output"):
            raise AssertionError(
                f"{page}: expected <!-- file: ... -->, <!-- not run: ... --> or <!-- output -->, got {before!r}"
            )
        yield Block(
            page=page,
            line=text.count("\n", 0, match.start("code")) + 1,
            language=language,
            code=match["code"],
            end=match.end(),
            file=value if kind == "file" else "",
            not_run=value if kind == "not run" else "",
            output=kind == "output",
            checks=tuple(re.findall(r"<!-- check: (.*) -->", match["after"])),
        )


@dataclass(frozen=True)
class Ran:
    """A block that ran, what it printed, and the pictures that it drew into the current folder."""

    block: Block
    printed: str
    pictures: tuple[Path, ...]


def run_page(page: Path) -> list[Ran]:
    """Run a page in the current folder."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    ran: list[Ran] = []
    for block in blocks(page):
        if block.output:
            assert same_output(ran[-1].printed, block.code), f"{page}, line {block.line}: printed\n{ran[-1].printed}"
        if block.not_run or block.language in SHOWN:
            continue
        before, said = _pictures(), io.StringIO()
        if block.file:
            Path(block.file).write_text(block.code)
        if block.language == "toml":
            tomllib.loads(block.code)
        elif block.language == "json":
            json.loads(block.code)
        elif block.language == "python" and not block.file:
            # Compiled with the page's name and line, so that a traceback points to the page.
            with redirect_stdout(said):
                exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), namespace)
        elif block.language == "bash" and not block.file:
            said.write(_shell(block))
        for check in block.checks:
            assert eval(check, namespace), f"{page}, after line {block.line}: {check}"
        drawn = tuple(path for path, time in _pictures().items() if before.get(path) != time)
        ran.append(Ran(block, said.getvalue(), drawn))
    return ran


def same_output(printed: str, shown: str) -> bool:
    """The same words, and numbers that differ no more than they do between machines: by half, or both below 1e-6."""
    pairs = list(zip_longest(NUMBER.findall(printed), NUMBER.findall(shown), fillvalue="nan"))
    return NUMBER.sub("#", printed) == NUMBER.sub("#", shown) and all(
        isclose(float(a), float(b), rel_tol=0.5, abs_tol=1e-6) for a, b in pairs
    )


def _pictures() -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in sorted(Path().glob("*.png"))}


def _shell(block: Block) -> str:
    # `cones` and `python` are those of the interpreter that runs the tests, with the code beside the page.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    code = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.code],
        env={**os.environ, "PATH": path, "PYTHONPATH": code},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{block.page}, line {block.line}:\n{block.code}\n{done.stdout}\n{done.stderr}"
    return done.stdout


if __name__ == "__main__":
    sys.path[:0] = [os.getcwd(), str(ROOT / "src")]  # a page may import the files that it writes
    shown = [(r.block.end, r.printed, list(map(str, r.pictures))) for r in run_page(Path(sys.argv[1]).resolve())]
    sys.stdout.write(json.dumps(shown) + "\n")
