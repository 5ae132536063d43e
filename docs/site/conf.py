"""Settings of Sphinx for the site; ``build.py`` puts the pages together first."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path

REPOSITORY = Path(os.environ["MXOPT_REPOSITORY"])
VERSION = re.search(r'VERSION = "(.+)"', (REPOSITORY / "mxopt/core/version.py").read_text())[1]

project, author, release = "mxopt", "the authors of mxopt", VERSION
copyright = "the authors of mxopt; Apache-2.0"
extensions = ["myst_nb", "autoapi.extension", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["**/.ipynb_checkpoints"]

html_theme = "furo"
html_title = f"mxopt {VERSION}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
# A summary is read with fetch(), which browsers refuse for files.
html_show_search_summary = False
html_show_sourcelink = html_copy_source = False

myst_heading_anchors = 4
myst_links_external_new_tab = True
# Notebooks are shown with the outputs that they have: measuring belongs to `make reproduce`.
nb_execution_mode = "off"
nb_merge_streams = True
# Its default loads require.js and the widgets' scripts from another host.
nb_ipywidgets_js = {}
copybutton_prompt_text = r">>> |\$ "
copybutton_prompt_is_regexp = True

# The reference is read from the source, so that MXNet need not be importable here.
autoapi_dirs = [str(REPOSITORY / "mxopt")]
autoapi_root = "reference"
autoapi_options = ["members", "show-inheritance", "show-module-summary"]
autoapi_add_toctree_entry = False
autoapi_keep_files = False
autoapi_member_order = "groupwise"
autoapi_own_page_level = "module"
napoleon_google_docstring, napoleon_numpy_docstring = True, False
napoleon_use_ivar = True
# The groups of switches in the docstring of Plan.
napoleon_custom_sections = [
    (group, "params_style")
    for group in ("Environment", "Graph", "Data", "Precision", "Devices", "Optimisation")
]

suppress_warnings = [
    "autoapi.python_import_resolution",  # MXNet's names, which are not installed here
    "mystnb.unknown_mime_type",  # a notebook's widget is shown as its picture
    "misc.highlighting_failure",  # shell lines in a cell of a notebook
    "myst.header",  # a cell may begin with a heading of any level
]


def setup(app):
    """Connect what Sphinx calls for each page."""
    app.connect("html-page-context", show_near_contents, priority=400)  # before the theme


def show_near_contents(app, page, template, context, doctree):
    """Have the theme show, beside a page, the contents around it: there are hundreds of modules."""
    if "toctree" in context:
        context["toctree"] = functools.partial(_collapsed, context["toctree"])


def _collapsed(contents, **options):
    return contents(**{**options, "collapse": True})
