"""Formulas as MathML, which browsers draw by themselves: no script from a network, no LaTeX on this machine."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)
BARE = re.compile(r"\\t?frac\s*[^{\s]|\\sqrt\s*[^{\[\s]")


def mathml(node: Any, block: bool) -> str:
    if BARE.search(node.astext()):  # \frac12 is TeX's one half, and the converter's 12 over what follows
        logger.warning("formula %r: give the arguments of frac and sqrt in braces", node.astext(), location=node)
    try:
        return str(latex2mathml.tex2mathml(node.astext(), as_block=block))
    except Exception as error:  # a formula that cannot be drawn is a warning, and that fails the build
        logger.warning("formula %r: %s", node.astext(), error, location=node)
        return ""


def parts(formula: str) -> list[str]:
    r"""What stands beside each other with \qquad in between: on a narrow page one part goes below the other."""
    if "\\begin" in formula:
        return [formula]
    found = [""]
    for piece in re.split(r"(?:\\qquad)+", formula):
        whole = found[-1].count("{") == found[-1].count("}")
        found = [*found, piece] if whole else [*found[:-1], f"{found[-1]}\\qquad{piece}"]
    return [part for part in found if part.strip()]


def visit_inline(self: Any, node: Any) -> None:
    self.body.append(f'<span class="math notranslate nohighlight">{mathml(node, block=False)}</span>')
    raise nodes.SkipNode


def visit_block(self: Any, node: Any) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math notranslate nohighlight"))
    for part in parts(node.astext()):
        shown = nodes.math("", part)
        shown.source, shown.line = node.source, node.line
        self.body.append(f'<span class="part">{mathml(shown, block=True)}</span>')
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
