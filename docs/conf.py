"""The site of the documentation: Sphinx over the Markdown pages as they lie in the repository (see docs/decisions/014-sphinx.md).

The pages' own links are the ones that count, so Sphinx's source is the root of the repository. Markdown has no table of contents of the
whole; it is `CONTENTS` here, and a page that is not in it fails the build.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

CONTENTS: dict[str, list[str]] = {
    "For users": [
        "docs/getting-started",
        "docs/guides/python-clients",
        "docs/guides/testing",
        "docs/guides/transactions",
        "docs/guides/quotas",
        "docs/security",
        "docs/spark",
        "docs/exactly-once",
        "docs/guides/demo",
        "examples/README",
    ],
    "For operators": [
        "docs/guides/operations",
        "docs/guides/cluster",
        "docs/guides/moving-from-kafka",
        "docs/guides/old-clients",
        "docs/guides/performance",
        "docs/guides/plugins",
        "docs/guides/faults",
        "docs/guides/data-folders",
        "SECURITY",
    ],
    "Reference": [
        "docs/reference/configuration",
        "docs/reference/cli",
        "docs/reference/apis",
        "docs/reference/errors",
        "docs/reference/metrics",
        "docs/compatibility",
    ],
    "Measured": ["docs/performance", "docs/scale", "docs/simulation"],
    "For developers": ["CONTRIBUTING", "ARCHITECTURE", "docs/internals/README", "docs/decisions/README"],
}
BELOW = {"docs/internals/README": "docs/internals", "docs/decisions/README": "docs/decisions"}

project = "barnabas"
root_doc = "README"
extensions = ["myst_parser"]
include_patterns = ["*.md", "docs/**.md", "examples/*.md"]
exclude_patterns = [".*", "bench", "build", "demo", "demo-output", "dist", "requirements", "src", "tests", "tools"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "barnabas"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
pygments_style = "tango"

START = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=README.html"><a href="README.html">barnabas</a>\n'


def setup(app: Sphinx) -> None:
    app.connect("source-read", append_contents)
    app.connect("build-finished", write_start)


def append_contents(app: Sphinx, name: str, source: list[str]) -> None:
    """Put the table of contents behind the page that has one."""
    if name == root_doc:
        source[0] += "".join(table(pages, caption) for caption, pages in CONTENTS.items())
    elif name in BELOW:
        folder = BELOW[name]
        pages = sorted(page.stem for page in (Path(app.srcdir) / folder).glob("*.md") if page.stem != "README")
        source[0] += table([f"{folder}/{page}" for page in pages])


def table(pages: list[str], caption: str = "") -> str:
    lines = [f":caption: {caption}"] * bool(caption) + [":hidden:", "", *(f"/{page}" for page in pages)]
    return "\n\n```{toctree}\n" + "\n".join(lines) + "\n```\n"


def write_start(app: Sphinx, error: Exception | None) -> None:
    if error is None:
        (Path(app.outdir) / "index.html").write_text(START)
