"""How Sphinx builds this folder as a site: `make docs`."""

from __future__ import annotations

import re
from importlib.metadata import version as installed_version
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

ROOT = Path(__file__).resolve().parent.parent
SOURCE_URL = "https://github.com/sennit/sennit/blob/main"

project = "sennit"
copyright = "the sennit authors"  # noqa: A001 - the name that Sphinx reads
release = version = installed_version("sennit")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

default_role = "code"  # docstrings name arguments between single backticks
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = f"sennit {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

log = logging.getLogger(__name__)

OUTSIDE = re.compile(
    r"\]\((?P<up>(?:\.\./)+)(?P<path>(?:src|tests|benchmarks|scripts)/[^)#\s]+|[A-Z]+\.md)(?P<anchor>#[^)\s]*)?\)"
)


def link_source_files(app: Sphinx, page: str, source: list[str]) -> None:
    """Turn links to files outside this folder into links to the repository; warn of those that are not there."""

    def absolute(match: re.Match[str]) -> str:
        target = (Path(app.srcdir) / page).parent.joinpath(match["up"] + match["path"]).resolve()
        if not target.exists():
            log.warning("dead link: %s", match["up"] + match["path"], location=page)
        return f"]({SOURCE_URL}/{target.relative_to(ROOT).as_posix()}{match['anchor'] or ''})"

    source[0] = OUTSIDE.sub(absolute, source[0])


def setup(app: Sphinx) -> None:
    """Register what this file adds to Sphinx."""
    app.connect("source-read", link_source_files)
