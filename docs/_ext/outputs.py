"""What the code of a page prints and draws, shown below each block: the page is run when the site is built.

blocks.py names the pages. A page is run again when it, the code, Python, NumPy or SciPy has changed. A block that fails
is a warning, and a warning fails the build.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy
import scipy
from blocks import run_by_the_site
from sphinx.util import logging

import cones

logger = logging.getLogger(__name__)
HERE = Path(__file__).parent
KEPT = HERE.parent / "_generated" / "outputs"
Output = tuple[int, str, list[str]]


def key(text: str) -> str:
    """Changes with everything that may change what a page prints."""
    sources = sorted(Path(cones.__file__).parent.rglob("*.py"))
    parts = [text, sys.version, numpy.__version__, scipy.__version__, (HERE / "blocks.py").read_text()]
    parts += [path.read_text() for path in sources]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def outputs_of(page: Path, kept: Path) -> list[Output]:
    """End of the block, what it printed, and its pictures in `kept`: for every block of a page that runs."""
    record, now = kept / "outputs.json", key(page.read_text())
    if record.exists():
        found = json.loads(record.read_text())
        if found["key"] == now:
            return [(end, printed, pictures) for end, printed, pictures in found["outputs"]]
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(HERE / "blocks.py"), str(page)]
        environment = {**os.environ, "HOME": folder, "OMP_NUM_THREADS": "1", "COLUMNS": "80"}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        outputs = json.loads(done.stdout.splitlines()[-1])
        for picture in (picture for _, _, pictures in outputs for picture in pictures):
            shutil.copy(Path(folder) / picture, kept / picture)
    record.write_text(json.dumps({"key": now, "outputs": outputs}))
    return [(end, printed, pictures) for end, printed, pictures in outputs]


def with_outputs(text: str, outputs: list[Output], folder: str) -> str:
    """The page with a block of text and figures after each block that printed or drew."""
    for end, printed, pictures in reversed(outputs):
        shown = f"\n\n```{{code-block}} text\n:class: output\n\n{printed.rstrip()}\n```\n" if printed.strip() else ""
        for picture in pictures:
            shown += f"\n\n:::{{figure}} {folder}/{picture}\n:alt: what the code above draws: {picture}\n"
            shown += f":class: on-white\n\n`{picture}`\n:::\n"
        text = text[:end] + shown + text[end:]
    return text


def show(app: Any, docname: str, source: list[str]) -> None:
    page = Path(app.srcdir, f"{docname}.md")
    if page not in run_by_the_site():
        return
    try:
        outputs = outputs_of(page, KEPT / docname)
    except RuntimeError as error:
        logger.warning("the code of this page failed:\n%s", error, location=docname)
        return
    source[0] = with_outputs(source[0], outputs, f"/_generated/outputs/{docname}")


def setup(app: Any) -> dict[str, Any]:
    app.connect("source-read", show, priority=400)  # before pages are listed: places are those of the file
    return {"parallel_read_safe": True}
