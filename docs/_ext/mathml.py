"""Formulas as MathML, which browsers draw by themselves: no script from a network, no LaTeX on this machine."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)


def mathml(node: Any, block: bool) -> str:
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
