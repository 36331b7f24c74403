"""The site of the documentation: Sphinx over the Markdown pages as they are in the repository (see docs/decisions/014-sphinx.md).

Sphinx's source is the root of the repository, so a link works on the site and between the files. `docs/index.md` is the front page;
README is the front page of the repository and not part of the site. Markdown has no table of contents, so `CONTENTS` is here. A page
that is not in it fails the build.

A page shows a diagram by `<picture>`, which follows the reader's colours in a repository. The site has a switch of its own for light
and dark, so `show_diagrams` turns each `<picture>` into two images of which the theme shows one.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

CONTENTS: dict[str, list[str]] = {
    "Start here": [
        "docs/getting-started",
        "docs/how-it-works",
        "docs/tutorials/flights-in-sql",
        "docs/tutorials/views",
        "docs/guides/demo",
    ],
    "Build applications": [
        "docs/guides/python-clients",
        "docs/guides/testing",
        "docs/guides/schema-registry",
        "docs/guides/schemas-in-python",
        "docs/guides/sql",
        "docs/guides/tables",
        "docs/guides/table-formats",
        "docs/guides/transactions",
        "docs/spark",
        "docs/guides/views",
        "docs/guides/functions",
        "docs/guides/streams",
        "docs/guides/jobs",
        "docs/guides/connect",
        "docs/guides/connect-files",
        "docs/guides/connect-http",
        "docs/guides/connect-lakes",
        "docs/guides/connect-spark",
        "docs/guides/connect-dlt",
        "docs/guides/databases",
        "docs/guides/capture-postgresql",
        "docs/guides/capture-mariadb",
        "docs/exactly-once",
        "examples/README",
    ],
    "Run brokers": [
        "docs/guides/operations",
        "docs/guides/mirroring",
        "docs/guides/failover",
        "docs/guides/services",
        "docs/guides/cluster",
        "docs/security",
        "docs/guides/quotas",
        "docs/guides/faults",
        "docs/guides/data-folders",
        "docs/guides/performance",
        "docs/guides/plugins",
    ],
    "Move from Kafka": [
        "docs/guides/moving-from-kafka",
        "docs/guides/from-confluent",
        "docs/guides/from-ksqldb",
        "docs/guides/old-clients",
        "docs/compatibility",
    ],
    "Reference": [
        "docs/reference/configuration",
        "docs/reference/cli",
        "docs/reference/apis",
        "docs/reference/errors",
        "docs/reference/metrics",
        "docs/reference/registry-rest",
        "docs/reference/connect",
        "docs/reference/connectors",
        "docs/reference/sql",
    ],
    "Status and proofs": ["docs/status", "docs/performance", "docs/scale", "docs/simulation", "SECURITY", "CHANGELOG"],
    "Contribute": ["CONTRIBUTING", "ARCHITECTURE", "docs/internals/README", "docs/decisions/README"],
}
SHORT_TITLES = {
    "SECURITY": "Security policy",
    "docs/compatibility": "Compatibility",
    "docs/guides/cluster": "Clusters",
    "docs/guides/data-folders": "Data folders",
    "docs/guides/demo": "The demo",
    "docs/guides/faults": "Disk faults",
    "docs/guides/from-confluent": "Confluent's registry",
    "docs/guides/from-ksqldb": "From ksqlDB",
    "docs/guides/moving-from-kafka": "Moving from Kafka",
    "docs/guides/old-clients": "Old clients",
    "docs/guides/performance": "Tuning",
    "docs/guides/plugins": "Plug-ins",
    "docs/guides/quotas": "Quotas",
    "docs/guides/testing": "Tests",
    "docs/scale": "Scale",
    "docs/spark": "Spark",
}
BELOW = {"docs/internals/README": "docs/internals", "docs/decisions/README": "docs/decisions"}

ROOT = Path(__file__).resolve().parent.parent

project = "barnabas"
version = release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
root_doc = "docs/index"
extensions = ["myst_parser", "sphinx_copybutton"]
include_patterns = ["*.md", "docs/**.md", "examples/*.md"]
exclude_patterns = [".*", "README.md", "bench", "build", "demo", "demo-output", "dist", "requirements", "src", "tests", "tools"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"barnabas {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#c2410c", "color-brand-content": "#b03a0a", "color-brand-visited": "#9a3412"},
    "dark_css_variables": {"color-brand-primary": "#fb923c", "color-brand-content": "#fb923c", "color-brand-visited": "#fdba74"},
    "top_of_page_buttons": [],
}
highlight_language = "none"  # of blocks that name none: output, drawings, files
pygments_style = "tango"
pygments_dark_style = "github-dark"
copybutton_selector = "div:not(.highlight-text) > div.highlight > pre"  # what a command prints is not to be copied

START = (
    '<!doctype html><meta charset="utf-8"><title>barnabas</title><meta http-equiv="refresh" content="0; url=docs/index.html">'
    '<a href="docs/index.html">barnabas</a>\n'
)
PICTURE = re.compile(r'<picture>\s*<source [^>]*srcset="([^"]+)">\s*<img alt="([^"]*)" src="([^"]+)"[^>]*>\s*</picture>')


def setup(app: Sphinx) -> None:
    app.connect("source-read", show_diagrams)
    app.connect("source-read", append_contents)
    app.connect("build-finished", write_start)


def show_diagrams(_app: Sphinx, _name: str, source: list[str]) -> None:
    """Put two images for each `<picture>`, in a box that scrolls where the screen is narrow."""
    source[0] = PICTURE.sub(
        lambda match: "\n\n".join(
            ['<div class="diagram">', image(match[3], match[2], "only-light"), image(match[1], match[2], "only-dark"), "</div>"]
        ),
        source[0],
    )


def image(path: str, alternative: str, kind: str) -> str:
    return f"```{{image}} {path}\n:alt: {alternative}\n:class: {kind}\n```"


def append_contents(app: Sphinx, name: str, source: list[str]) -> None:
    """Append the table of contents to each page that has one."""
    if name == root_doc:
        source[0] += "".join(table(pages, caption) for caption, pages in CONTENTS.items())
    elif name in BELOW:
        folder = BELOW[name]
        pages = sorted(page.stem for page in (Path(app.srcdir) / folder).glob("*.md") if page.stem != "README")
        source[0] += table([f"{folder}/{page}" for page in pages])


def table(pages: list[str], caption: str = "") -> str:
    lines = [f":caption: {caption}"] * bool(caption) + [":hidden:", "", *map(entry, pages)]
    return "\n\n```{toctree}\n" + "\n".join(lines) + "\n```\n"


def entry(page: str) -> str:
    title = SHORT_TITLES.get(page)
    return f"{title} </{page}>" if title else f"/{page}"


def write_start(app: Sphinx, error: Exception | None) -> None:
    if error is None:
        (Path(app.outdir) / "index.html").write_text(START)
