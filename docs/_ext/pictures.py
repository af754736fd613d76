"""Computed pictures: `{picture} kl_ball` draws docs/theory/kl_ball.py for light and dark, wide and narrow pages."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import cones

logger = logging.getLogger(__name__)
DOCS = Path(__file__).parents[1]
DRAWN = DOCS / "_generated" / "pictures"
GROUNDS = [(ground, width) for ground in ("light", "dark") for width in ("", "-narrow")]


def draw_all(app: Any) -> None:
    """Draw what is older than its script, than the code, or than the records."""
    sources = [*Path(cones.__file__).parent.rglob("*.py"), DOCS / "theory" / "drawing.py"]
    sources += [DOCS.parent / "benchmarks" / "RESULTS.md"]
    for folder in ("functions", "divergences", "divergences-swimmer", "kinks", "kinks-many"):
        sources += [*DOCS.parent.glob(f"results/{folder}/runs.zip"), *DOCS.parent.glob(f"results/{folder}/runs/*")]
    sources += [DOCS.parent / "results" / folder / "tables.md" for folder in ("adaptive", "robustness")]
    sources += [*DOCS.parent.glob("results/bbob/*.json")]
    newest = max(path.stat().st_mtime for path in sources)
    DRAWN.mkdir(parents=True, exist_ok=True)
    for script in sorted((DOCS / "theory").glob("*.py")):
        if script.stem == "drawing":
            continue
        for ground, width in GROUNDS:
            place = DRAWN / f"{script.stem}-{ground}{width}.svg"
            if not place.exists() or place.stat().st_mtime < max(newest, script.stat().st_mtime):
                logger.info("drawing %s", place.name)
                drawing = importlib.import_module("drawing")
                drawing.write(importlib.import_module(script.stem).draw, ground, place, narrow=bool(width))


class Picture(SphinxDirective):
    """A figure of four images, one per kind of page; the content is its caption."""

    required_arguments = 1
    has_content = True
    option_spec = {"alt": directives.unchanged_required}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if "alt" not in self.options:
            raise self.error("picture: expected :alt:, for those who do not see it")
        figure = nodes.figure()
        for ground, width in GROUNDS:
            place = f"/_generated/pictures/{name}-{ground}{width}.svg"
            figure += nodes.image(
                uri=place, alt=self.options["alt"], classes=[f"only-{ground}", "narrow" if width else "not-narrow"]
            )
        caption = nodes.caption("", "")
        for paragraph in self.parse_content_to_nodes():
            caption += paragraph.children if isinstance(paragraph, nodes.paragraph) else [paragraph]
        if caption.children:
            figure += caption
        self.env.note_dependency(str(DOCS / "theory" / f"{name}.py"))
        return [figure]


def setup(app: Any) -> dict[str, Any]:
    app.add_directive("picture", Picture)
    app.connect("builder-inited", draw_all)
    return {"parallel_read_safe": True}
