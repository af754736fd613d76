"""The recorded results: `{results} kinks rl*` shows the figures, tables and reports of the folders that are named.

They are taken from results/ as they are; a folder that is not there, or not complete, is left out.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from cones.packed import names

DOCS = Path(__file__).parents[1]
RESULTS, COPIED = DOCS.parent / "results", DOCS / "_generated" / "results"
REPORTS = DOCS / "_generated" / "reports"  # copied to the top of the site as they are
CAPTIONS = {
    "loss": "Mean loss of the population, with one standard deviation over seeds.",
    "step": "Length of the mean's step.",
    "reward": "Reward of the mean policy, with one standard deviation over seeds.",
    "population": "Mean reward of the population.",
    "refined": "Loss, or reward on Swimmer, at the end, by estimator and kind of step.",
    "loss_at_mean": "Loss at the mean, without the corruption.",
}


def folders(*patterns: str) -> list[Path]:
    """Folders with a specification and at least one figure, in the order of the patterns."""
    return [
        path.parent
        for pattern in patterns
        for path in sorted(RESULTS.glob(f"{pattern}/experiment.json"))
        if any(path.parent.glob("figures/*.png"))
    ]


def page(folder: Path) -> str:
    """The results of one folder as Markdown."""
    experiment = json.loads((folder / "experiment.json").read_text())
    here = COPIED / folder.name
    here.mkdir(parents=True, exist_ok=True)
    records = sum(name.endswith(".json.gz") for name in names(folder / "runs"))
    text = [f"## {experiment.get('title') or experiment['name']}", ""]
    text += [f"{records} {'record' if records == 1 else 'records'} in `results/{folder.name}`."]
    if (folder / "report.html").exists():
        text[-1] += f' <a href="../../{folder.name}-report.html">Interactive report</a>.'
    for figure in sorted(folder.glob("figures/*.png")):
        shutil.copy(figure, here / figure.name)
        caption = CAPTIONS.get(figure.stem, figure.stem)
        place = f"/_generated/results/{folder.name}/{figure.name}"
        text += ["", f":::{{figure}} {place}", f":alt: {caption}", ":class: on-white wide", "", caption, ":::"]
    if (folder / "tables.md").exists():
        text += ["", (folder / "tables.md").read_text()]
    return "\n".join(text) + "\n"


class Results(SphinxDirective):
    """The folders that are named, one section each."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        text = (
            "\n".join(map(page, folders(*self.arguments[0].split())))
            or "*No recorded results were found beside this documentation.*"
        )
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def copy_reports() -> None:
    REPORTS.mkdir(parents=True, exist_ok=True)
    for folder in folders("*"):
        if (folder / "report.html").exists():
            shutil.copy(folder / "report.html", REPORTS / f"{folder.name}-report.html")


def setup(app: Any) -> dict[str, Any]:
    copy_reports()  # before the configuration is checked: the folder is named in it
    app.add_directive("results", Results)
    return {"parallel_read_safe": True}
