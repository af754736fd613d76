"""Draw the pictures of the README: `python docs/readme.py`. They are committed, since a code host builds nothing."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PICTURES = HERE / "_static" / "readme"


def main() -> None:
    sys.path[:0] = [str(HERE / "_ext"), str(HERE / "theory"), str(HERE.parent / "src")]
    import drawing
    import evaluations
    from blocks import run_page

    PICTURES.mkdir(parents=True, exist_ok=True)
    for ground in drawing.GROUNDS:
        drawing.write(evaluations.draw, ground, PICTURES / f"evaluations-{ground}.svg")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for picture in (picture for ran in run_page(HERE.parent / "README.md") for picture in ran.pictures):
            shutil.copy(picture, PICTURES / picture.name)


if __name__ == "__main__":
    main()
