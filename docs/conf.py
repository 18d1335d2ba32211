"""How the documentation is built: ``make docs``."""

import re
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from coterie import __version__  # noqa: E402

project = "coterie"
author = "the coterie developers"
copyright = author
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "records",
]
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.py"]
templates_path = ["_templates"]
nitpicky = False

myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "html_image"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "order.Reading",
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "remove_config_comments": True,
    "matplotlib_animations": False,
    "abort_on_example_error": True,
}
suppress_warnings = ["myst.header"]  # a record may leave out a level of headings
warnings.filterwarnings("ignore", message=".*is non-interactive.*")  # plt.show() in examples

html_theme = "furo"
html_title = f"coterie {release}"
html_favicon = "../src/coterie/studio/static/icon.svg"
html_static_path = ["_static"]
html_css_files = ["coterie.css"]
html_show_sphinx = False
html_copy_source = False
pygments_style, pygments_dark_style = "friendly", "monokai"


def ours_only(app, what, name, obj, skip, options):
    """The API pages describe what coterie defines; what scikit-learn's base classes add is described there."""
    home = getattr(obj, "__module__", None) or getattr(getattr(obj, "fget", None), "__module__", None)
    return True if home is not None and not home.startswith("coterie") else None


def plain_underscores(app, what, name, obj, options, lines):
    """``labels_`` in a docstring is a name, not the label of a link. This runs after numpydoc."""
    lines[:] = [re.sub(r"(?<![\w`*_])([a-z]\w*_)(?![\w`*_{])", r"``\1``", line) for line in lines]


def setup(app):
    app.connect("autodoc-skip-member", ours_only)
    app.connect("autodoc-process-docstring", plain_underscores, priority=900)
