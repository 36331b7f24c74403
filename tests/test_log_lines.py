"""Log lines have one form, to be searched and counted by: `event=what-happened key=value …`, the event as it stands in the code.

Ugly: a logger is known by its name. One that were called otherwise would be missed, so its making is checked as well.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.syntax import parsed

pytestmark = pytest.mark.usefixtures("syntax_trees")
ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
LEVELS = ("debug", "info", "warning", "error", "exception", "critical", "log")
FIELD = r"[a-z]\w*=(?:%[-#.\d]*[a-z]|'[^'%]+'|\w+)"  # a constant value stands as it is; in quotes if it has several words
MESSAGE = re.compile(rf"event=[a-z]+(?:-[a-z]+)*(?: {FIELD})*")
BARE_TEXT = re.compile(r"\b(?:error|reason|note|hint)=%(?!r)")  # these values may have spaces and line ends


def modules() -> dict[str, ast.Module]:
    return {path.relative_to(SOURCE).as_posix(): parsed(path) for path in sorted(SOURCE.rglob("*.py"))}


def makes_a_logger(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("logging.getLogger", "getLogger")


def messages(tree: ast.Module) -> Iterator[tuple[int, ast.expr | None]]:
    """The lines where something is logged, and what."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name("logger"), attr=level), args=args) if level in LEVELS:
                message = args[level == "log" :]
                yield node.lineno, message[0] if message else None
            case ast.Call(func=ast.Attribute(value=ast.Name("logging"), attr=level)) if level in LEVELS:
                yield node.lineno, None  # the root logger belongs to no module


def fault(message: ast.expr | None) -> str | None:
    match message:
        case ast.Constant(str(text)):
            if not MESSAGE.fullmatch(text):
                return f"not event=… key=value …: {text}"
            return f"a text by other than %r: {text}" if BARE_TEXT.search(text) else None
    return "no text that stands in the code"


def test_every_message_is_an_event_and_its_fields() -> None:
    found = [(f"{name}:{line}", fault(message)) for name, tree in modules().items() for line, message in messages(tree)]
    assert len(found) > 100
    assert [each for each in found if each[1] is not None] == []


def test_loggers_have_one_name_and_the_name_of_their_module() -> None:
    made = {}
    for name, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.Assign) and makes_a_logger(node.value):
                made[name] = ast.unparse(node)
    assert len(made) > 50
    assert set(made.values()) == {"logger = logging.getLogger(__name__)"}


def test_events_that_pages_name_are_logged() -> None:
    logged = {
        text.split()[0]
        for tree in modules().values()
        for _, message in messages(tree)
        if isinstance(message, ast.Constant) and isinstance(text := message.value, str)
    }
    pages = {page.name: page.read_text() for page in (ROOT / "docs").rglob("*.md")}
    named = {(name, event) for name, text in pages.items() for event in re.findall(r"event=[a-z-]+", text)}
    assert len(named) > 5
    assert [each for each in named if each[1] not in logged] == []


@pytest.mark.parametrize(
    "message",
    [
        "the log was cut",
        "event=log_cut",
        "event=%s topic=%s",
        "event=log-cut at=",
        "event=log-cut the end=%d",
        "event=log-cut error=%s",
        "event=log-cut note='by the leader",
    ],
)
def test_other_forms_are_told(message: str) -> None:
    assert fault(ast.Constant(message)) is not None
    assert fault(ast.Constant("event=log-cut topic=%s ratio=%.2f id=%#x error=%r note='by the leader' reason=idle")) is None
    assert fault(ast.Name("TEXT")) is not None
