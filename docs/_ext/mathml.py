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


def visit_inline(self: Any, node: Any) -> None:
    self.body.append(f'<span class="math notranslate nohighlight">{mathml(node, block=False)}</span>')
    raise nodes.SkipNode


def visit_block(self: Any, node: Any) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math notranslate nohighlight"))
    self.body.append(f"{mathml(node, block=True)}</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
