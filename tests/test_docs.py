"""The reference pages say what the code does, generated files are as generated, and links between pages lead somewhere."""

from __future__ import annotations

import ast
import asyncio
import re
import runpy
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from barnabas import __version__
from barnabas.cli.main import cli
from barnabas.engine.metrics import NAMES as OF_JOBS
from barnabas.server.scraping import NAMES
from barnabas.services.metrics import REQUESTS
from barnabas.storage.files import Files

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")])
MEASURED = re.compile(r"\bMeasured\b")
# a command that measures, or a link to a page of results
COMMAND = re.compile(r"`(?:python|make|pytest) |\]\([./]*(?:performance|scale)\.md")
PICTURE = re.compile(r'(?:src|srcset)="([^"]+)"')
LINK = re.compile(r"\]\(([^)#\s]*)#?([^)\s]*)\)")
PAGES_WITH_FIGURES = [
    page for page in PAGES if page.is_relative_to(ROOT / "docs") and page.parent.name not in {"reference", "decisions"}
]
IMPORTED_BY_USERS = [
    "__init__.py",
    "client/*.py",
    "testing/*.py",
    "pipelines/__init__.py",
    "pipelines/functions.py",
    "plugins/*.py",
]
GENERATORS = ["tools/docs.py", "tools/diagrams.py", "tools/generate_config.py", "tools/generate_messages.py"]


@pytest.mark.parametrize("generator", GENERATORS)
def test_what_is_generated_is_current(generator: str) -> None:
    done = subprocess.run([sys.executable, generator, "--check"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES_WITH_FIGURES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_was_measured_stands_with_the_command_that_measures_it(page: Path) -> None:
    head, *sections = re.split(r"(?m)^(?=## )", without_code(page.read_text()))
    if COMMAND.search(head):
        return
    silent = [
        section.partition("\n")[0] for section in (head, *sections) if MEASURED.search(section) and not COMMAND.search(section)
    ]
    assert silent == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for target, anchor in LINK.findall(without_code(page.read_text())):
        if "://" in target:
            continue
        goal = page.parent / target if target else page
        if not goal.exists() or (anchor and anchor not in anchors_of(goal)):
            broken.append(f"{target}#{anchor}")
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pictures_of_both_themes_are_there(page: Path) -> None:
    assert [path for path in PICTURE.findall(without_code(page.read_text())) if not (page.parent / path).is_file()] == []


def test_the_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def without_code(text: str) -> str:
    return re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)


@cache
def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    seen: Counter[str] = Counter()
    found = set()
    for heading in re.findall(r"^#+ (.+)$", without_code(page.read_text()), re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def undocumented(node: ast.Module | ast.ClassDef, inherited: frozenset[str]) -> Iterator[str]:
    """The public functions, classes and methods below `node` that say nothing of themselves."""
    for each in node.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not each.name.startswith(("_", "test_")):
            if ast.get_docstring(each) is None and each.name not in inherited:
                yield each.name
            if isinstance(each, ast.ClassDef):
                yield from (f"{each.name}.{name}" for name in undocumented(each, inherited))


def test_what_users_import_is_documented() -> None:
    named = frozenset([*dir(asyncio.BufferedProtocol), *dir(Files)])  # the interfaces document these methods
    modules = [path for pattern in IMPORTED_BY_USERS for path in (ROOT / "src/barnabas").glob(pattern)]
    assert len(modules) > 20
    assert {path.name: found for path in modules if (found := list(undocumented(ast.parse(path.read_text()), named)))} == {}


def test_every_page_is_in_the_contents_of_the_site() -> None:
    site = runpy.run_path(str(ROOT / "docs/conf.py"))
    below = {page for folder in site["BELOW"].values() for page in (ROOT / folder).glob("*.md")}
    named = {ROOT / f"{page}.md" for pages in site["CONTENTS"].values() for page in pages}
    assert {ROOT / "README.md", ROOT / "docs/index.md", *named, *below} == set(PAGES)


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    newest = re.search(r"^## (\S+) - ", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert project["project"]["version"] == newest[1] == __version__


def test_metrics_that_pages_name_exist() -> None:
    unknown = set()
    for page in PAGES:
        for name in re.findall(r"`(barnabas_[a-z_]+)", page.read_text()):
            known = re.sub(r"_(count|sum|bucket|total)$", "", name) in {*NAMES, REQUESTS, *OF_JOBS} or name in NAMES
            unknown |= set() if known or name.endswith("_") else {(page.name, name)}
    assert unknown == set()


def commands_of(page: Path) -> Iterator[str]:
    """The commands of a page, in its shell blocks and within its sentences."""
    text = page.read_text()
    blocks = "\n".join(re.findall(r"^ *```shell\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)).replace("\\\n", " ")
    yield from re.findall(r"^ *(barnabas [^#|>\n]+)", blocks, re.MULTILINE)
    yield from (span for span in re.findall(r"`(barnabas [^`|>\n]+)`", text) if not span.startswith("barnabas broker 1 "))


def what_is_wrong(line: str) -> str | None:
    """Why `line` cannot be typed, as far as the names of commands and options tell."""
    words = re.sub(r"'[^']*'|\"[^\"]*\"", "X", line).partition(" -- ")[0].split()[1:]
    command: click.Command = cli
    while isinstance(command, click.Group) and words and re.fullmatch("[a-z-]+", words[0]) and not words[0].startswith("-"):
        found = command.get_command(click.Context(command), words[0])
        if found is None:
            return f"no command {words[0]}: {line}"
        command, words = found, words[1:]
    known = {"--help", "-h", "--version"}.union(*([*each.opts, *each.secondary_opts] for each in command.params))
    given = {word.partition("=")[0].rstrip(",") for word in words if re.match("--?[a-zA-Z]", word)}
    return f"no option {', '.join(sorted(given - known))}: {line}" if given - known else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_that_pages_name_exist(page: Path) -> None:
    assert [wrong for wrong in map(what_is_wrong, commands_of(page)) if wrong] == []


def test_a_command_that_does_not_exist_is_found() -> None:
    assert what_is_wrong("barnabas topic create t --partitions 3 -X a=b") is None
    assert what_is_wrong("barnabas topic make t") == "no command make: barnabas topic make t"
    assert what_is_wrong("barnabas consume t --until=5") == "no option --until: barnabas consume t --until=5"
