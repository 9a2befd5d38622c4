"""How the documentation site is built: Sphinx, Markdown pages, one page per area of the API."""

from __future__ import annotations

import vecfill

project = "vecfill"
author = "The vecfill maintainers"
release = version = vecfill.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]
root_doc = "index"

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
# `console` blocks are shell transcripts; a block without a name is plain text.
highlight_language = "none"

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "undoc-members": False}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
# Keyword arguments that are described once, in `vecfill.requests`.
napoleon_custom_sections = [("Options", "params_style")]

html_theme = "furo"
html_title = "vecfill"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
# Excerpts in search results are fetched, which a browser refuses to do from disk.
html_show_search_summary = False
# Nothing is fetched: the site works from disk, on a train, and behind a firewall.
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0b6e69",
        "color-brand-content": "#0b6e69",
        "font-stack": "system-ui, sans-serif",
    },
    "dark_css_variables": {
        "color-brand-primary": "#5cc8bf",
        "color-brand-content": "#5cc8bf",
    },
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
