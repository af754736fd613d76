"""The help of commands, from the parser itself: `{commands} minimize train`. There is a form for phones, too."""

from __future__ import annotations

import argparse
import os
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from cones.cli.main import parser


class Commands(SphinxDirective):
    """A section with the help text of each command that is named; all of them if none is."""

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        (choices,) = (action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
        names = self.arguments[0].split() if self.arguments else list(choices.choices)
        sections: list[nodes.Node] = []
        for name in names:
            section = nodes.section(ids=[f"cones-{name}"], names=[f"cones {name}"])
            section += nodes.title(text=f"cones {name}")
            for form, columns in (("not-narrow", "80"), ("narrow", "46")):  # more does not fit the page
                os.environ["COLUMNS"] = columns  # argparse folds its help to the terminal
                text = choices.choices[name].format_help()
                section += nodes.literal_block(text, text, language="text", classes=["help", form])
            sections.append(section)
        return sections


def setup(app: Any) -> dict[str, Any]:
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True}
