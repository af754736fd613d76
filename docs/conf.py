"""Configuration of the documentation: `make docs` builds it, without warnings and without network."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE / "theory"), str(HERE.parent / "src")]

import cones  # noqa: E402

project, author = "cones", "The cones developers"
version = release = cones.__version__
copyright = "the cones developers, Apache-2.0"  # noqa: A001

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "docstrings",
    "commands",
    "mathml",
    "outputs",
    "pictures",
    "results",
]
exclude_patterns = ["_build", "_generated", "theory/*.py"]
suppress_warnings = ["myst.header"]  # the recorded benchmarks are sections of one level

myst_enable_extensions = ["attrs_block", "dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
myst_links_external_new_tab = True

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say in words what types say in symbols
autoclass_content = "class"
napoleon_google_docstring, napoleon_numpy_docstring = True, False
napoleon_use_rtype = napoleon_use_param = False  # arguments that share a line of text stay together
napoleon_use_ivar = True
default_role = "code"  # in docstrings `x` is code
add_module_names = False

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"cones {release}"
html_static_path = ["_static"]
html_extra_path = ["_generated/reports"]
html_css_files = ["cones.css"]
html_copy_source = html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#b8394b", "color-brand-content": "#b8394b"},
    "dark_css_variables": {"color-brand-primary": "#f2848f", "color-brand-content": "#f2848f"},
    "navigation_with_keys": True,
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
pygments_style, pygments_dark_style = "friendly", "monokai"
