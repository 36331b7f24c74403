"""Completion: keywords, tables, columns, settings and commands, by the words around the cursor."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from barnabas.cli.sql.backslash import command_names, quoted
from barnabas.cli.sql.colours import KEYWORDS
from barnabas.cli.sql.printers import FORMATS
from barnabas.cli.sql.scanner import Kind, Token, tokens
from barnabas.cli.sql.table_names import TableNames

BEFORE_TABLES = {"from", "join", "into", "update", "table", "describe", "desc", "truncate", "copy", "stream"}
BEFORE_SETTINGS = {"set", "show", "reset"}
SHOWN = ("TABLES", "COLUMNS FROM", "CREATE TABLE", "ALL", "DATABASES", "SCHEMAS", "STREAMS", "JOBS")
WITH_TABLES, WITH_FILES = ("d", "copy"), ("i", "o", "g", "gx")
_WORD = re.compile(r"[\w$.\"]*\Z")
_TABLE = r'(?:"[^"]+"|[\w$]+)(?:\.(?:"[^"]+"|[\w$]+))*'
_USED = re.compile(
    rf"\b(?:from|join|into|update)\s+({_TABLE})(?:\s+(?:as\s+)?(?!where\b|on\b|join\b|set\b)(\w+))?", re.IGNORECASE
)


class Suggestions(Completer):
    """Completions of the text before the cursor.

    Args:
        names: asks the cluster; called in the thread of completion.
    """

    def __init__(self, names: TableNames) -> None:
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        before = document.text_before_cursor
        if before.lstrip().startswith("\\"):
            yield from _matching(self._after_command(before.lstrip()), before.split(" ")[-1].lstrip())
            return
        found = list(tokens(before))
        if found and (found[-1].is_open or found[-1].kind is Kind.COMMENT):
            return
        typed = _WORD.search(before)
        word = typed[0] if typed is not None else ""
        start = len(before) - len(word)
        yield from self._of_statement(document.text, before, found, word, start)

    def _after_command(self, line: str) -> Iterable[str]:
        name, space, rest = line[1:].partition(" ")
        if not space:
            return [f"\\{each}" for each in command_names()]
        if name.removesuffix("+") in WITH_TABLES:
            return [quoted(each) for each in self._names.tables()]
        if name in WITH_FILES:
            return _files(rest.split(" ")[-1])
        if name == "pset":
            return FORMATS if rest.startswith("format ") else ("format", "null", "expanded", "tuples_only")
        return ("on", "off") if name in ("x", "timing", "t") else ()

    def _of_statement(self, text: str, before: str, found: Sequence[Token], word: str, start: int) -> Iterator[Completion]:
        used = {alias.lower() or table: table for table, alias in _USED.findall(text)}
        owner, dot, last = word.rpartition(".")
        if dot:
            table = used.get(owner.lower()) or used.get(owner) or owner
            yield from _matching(map(quoted, self._names.columns(table)), last)
            return
        previous = _word_before(before, found, start)
        if previous in BEFORE_TABLES:
            yield from _matching((quoted(each) for each in self._names.tables()), word)
            return
        if previous in BEFORE_SETTINGS:
            yield from _matching([*(SHOWN if previous == "show" else ()), *self._names.settings()], word)
            return
        if not word:
            return
        columns = {quoted(name): None for table in used.values() for name in self._names.columns(table)}
        yield from _matching(columns, word)
        yield from _matching((_in_case(each, word) for each in KEYWORDS if each.lower() not in columns), word)


def _word_before(before: str, found: Sequence[Token], start: int) -> str:
    words = [before[each.start : each.end] for each in found if each.end <= start and each.kind not in (Kind.SPACE, Kind.COMMENT)]
    return words[-1].lower() if words else ""


def _in_case(keyword: str, word: str) -> str:
    return keyword if word.isupper() else keyword.lower()


def _matching(names: Iterable[str], word: str) -> Iterator[Completion]:
    wanted = word.lower().lstrip('"')
    for name in names:
        if name.lower().lstrip('"').startswith(wanted) and name != word:
            yield Completion(name, -len(word))


def _files(word: str) -> list[str]:
    path = Path(word or ".").expanduser()
    folder = path if word.endswith("/") or not word else path.parent
    head = word[: word.rfind("/") + 1]
    try:
        return sorted(f"{head}{each.name}{'/' if each.is_dir() else ''}" for each in folder.iterdir())
    except OSError:
        return []
