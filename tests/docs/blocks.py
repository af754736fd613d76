"""The code blocks of a Markdown page, and how each is run.

A page's Python blocks run in order in one namespace, its bash blocks in between, all in one empty folder. A comment on
the line above a block, or below it, says more:

    <!-- file: NAME -->      the block is the content of a file
    <!-- not run: REASON --> it cannot run here; how many there are is on record in test_pages.py
    <!-- check: EXPRESSION --> below a block: true after it, in the page's namespace
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FENCE = re.compile(
    r"^(?P<before><!-- [^\n]*-->\n)?(?P<fence>`{3,}|:{3,})(?P<language>[^\n`]*)\n(?P<code>.*?)^(?P=fence)$"
    r"(?P<after>(?:\n+<!-- check: [^\n]*-->)*)",
    re.MULTILINE | re.DOTALL,
)
RUN = ("python", "bash", "toml", "json")
SHOWN = ("bibtex", "text")


@dataclass(frozen=True)
class Block:
    """A block of code, what its page says of it, and the line that it starts on."""

    page: Path
    line: int
    language: str
    code: str
    file: str
    not_run: str
    checks: tuple[str, ...]


def pages() -> list[Path]:
    """All pages that hold code for readers, from the top of the repository."""
    built = ("_build", "_generated")
    return [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "results/README.md")),
        *(path for path in sorted((ROOT / "docs").rglob("*.md")) if not set(path.parts) & set(built)),
    ]


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for match in FENCE.finditer(text):
        language = match["language"].strip()
        if language.startswith("{"):
            continue  # a directive of the documentation
        before = (match["before"] or "").strip().removeprefix("<!-- ").removesuffix(" -->")
        kind, _, value = before.partition(": ")
        if before and kind not in ("file", "not run"):
            raise AssertionError(f"{page}: expected <!-- file: ... --> or <!-- not run: ... -->, got {before!r}")
        yield Block(
            page=page,
            line=text.count("\n", 0, match.start("code")) + 1,
            language=language,
            code=match["code"],
            file=value if kind == "file" else "",
            not_run=value if kind == "not run" else "",
            checks=tuple(re.findall(r"<!-- check: (.*) -->", match["after"])),
        )


def run_page(page: Path) -> int:
    """Run a page in the current folder, and count its blocks that ran."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    for block in blocks(page):
        if block.not_run or block.language in SHOWN:
            continue
        if block.file:
            Path(block.file).write_text(block.code)
        if block.language == "toml":
            tomllib.loads(block.code)
        elif block.language == "json":
            json.loads(block.code)
        elif block.language == "python" and not block.file:
            # Compiled with the page's name and line, so that a traceback points to the page.
            exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), namespace)
        elif block.language == "bash" and not block.file:
            _shell(block)
        for check in block.checks:
            assert eval(check, namespace), f"{page}, after line {block.line}: {check}"
        count += 1
    return count


def _shell(block: Block) -> None:
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
