"""The English of docstrings, help texts and comments: no sentence begins with a relative clause as its subject.

"Who asks for it waits" names no actor; "A client that asks for it waits" does. A package joins `PLAIN` when its
texts keep to this.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("syntax_trees")
ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src/barnabas"
PLAIN = (
    "cli",
    "client",
    "cluster",
    "columnar",
    "config",
    "coordination",
    "pipelines",
    "plugins",
    "protocol",
    "quota",
    "registry",
    "replication",
    "schemas",
    "security",
    "server",
    "sql",
    "services",
    "storage",
    "tables",
    "testing",
    "tls",
    "web",
    *(path.relative_to(SOURCE).as_posix() for path in (*sorted(SOURCE.glob("*.py")), *sorted((SOURCE / "engine").glob("*.py")))),
)
BESIDE = ("bench", "demo", "examples", "tests", "tools")  # folders beside the package
SENTENCE_END = re.compile(r"(?<=[.:;!?])\s+|\n\s*\n\s*|\n\s*(?:\d+\.|-)\s+")
BAD_SUBJECT = re.compile(r"(?:Who|Whoever|What|Whichever|Whatever|That which)\s")
BAD_COMMENT = re.compile(rf"(?i:{BAD_SUBJECT.pattern})")


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Docstrings and the values of `help=`, each with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text)) as constant):
                yield constant.lineno, text
            case ast.keyword(arg="help", value=ast.Constant(value=str(text)) as constant):
                yield constant.lineno, text


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Comments, each with its line. The words after a directive such as `# noqa: X - words` are not looked at."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")


def bad_sentences(text: str) -> list[str]:
    sentences = (" ".join(each.split()) for each in SENTENCE_END.split(text))
    return [each for each in sentences if BAD_SUBJECT.match(each) and not each.endswith("?")]


@pytest.mark.parametrize(
    "path",
    [*(SOURCE / each for each in PLAIN), *(ROOT / each for each in BESIDE)],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_no_sentence_begins_with_a_relative_clause(path: Path) -> None:
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    assert files
    found = [
        f"{file.relative_to(ROOT)}:{line}: {sentence}"
        for file in files
        for line, text in texts(ast.parse(file.read_text()))
        for sentence in bad_sentences(text)
    ]
    found += [
        f"{file.relative_to(ROOT)}:{line}: # {text}"
        for file in files
        for line, text in comments(file.read_text())
        if BAD_COMMENT.match(text) and not text.endswith("?")
    ]
    assert found == []


def test_the_pattern_finds_bad_subjects_and_no_others() -> None:
    assert bad_sentences("Rules. Who asks waits. It goes on.\n\n1. What is kept stays; whoever comes.") == [
        "Who asks waits.",
        "What is kept stays;",
    ]
    assert bad_sentences("The client waits for what is kept. When it comes, a broker that asks gets it.") == []
