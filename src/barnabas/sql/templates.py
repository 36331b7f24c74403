"""Statements whose literals stand for parameters, so that `… WHERE id = 7` and `… WHERE id = 8` are one statement to check.

A client that writes values into its statements sends another text each time. Checking a text takes some milliseconds of processor time.

Rules
  1. A template is only used where it gives what the statement itself gives: to read or change a row by its key, and to insert rows of plain
     literals. Such statements take the values of literals as they are (`planning/point.py`, `statements/rows.py`, `statements/modify.py`).
  2. Anything doubtful makes no template.
"""

from __future__ import annotations

import decimal
import re
from typing import Any, NamedTuple

from barnabas import limits

MOST_CHARACTERS, MOST_VALUES = 2_000, 100
_WORTH = re.compile(r"\s*(?:select|insert|update|delete)\s", re.IGNORECASE)
_PIECE = re.compile(r"""(?P<name>"[^"]*")|(?P<text>'(?:[^']|'')*')|(?P<number>(?<![\w.$])\d+(?:\.\d+)?(?![\w.]))""", re.ASCII)
_ODD = re.compile(r"""[$;\\`'"]|--|/\*""")
_SIGNED = re.compile(r"[(,=]\s*-\Z")
_KEPT = re.compile(r"\blimit\s+\Z", re.IGNORECASE)


class Template(NamedTuple):
    """A statement with `$1`, … in place of its literals, and their values."""

    text: str
    values: tuple[Any, ...]


def template_of(text: str) -> Template | None:
    """The template of a statement; None if it has none."""
    if len(text) > MOST_CHARACTERS or "\0" in text or not _WORTH.match(text):
        return None
    parts: list[str] = []
    values: list[Any] = []
    at = 0
    end = len(text.rstrip("; \t\r\n"))
    for found in _PIECE.finditer(text, 0, end):
        between = text[at : found.start()]
        if _ODD.search(between):
            return None
        at = found.end()
        kind, piece = found.lastgroup, found[0]
        if kind == "name" or (kind == "number" and _KEPT.search(between)):
            parts += (between, piece)
            continue
        if kind == "text":
            if found.start() and (text[found.start() - 1].isalnum() or text[found.start() - 1] in "_&'"):
                return None  # a prefix gives the literal another meaning
            value: Any = piece[1:-1].replace("''", "'")
        else:
            if _SIGNED.search(between):
                between, piece = between.rstrip()[:-1], f"-{piece}"
            value = decimal.Decimal(piece) if "." in piece else int(piece)
        values.append(value)
        parts += (between, f"${len(values)}")
    rest = text[at:end]
    if not 1 <= len(values) <= MOST_VALUES or _ODD.search(rest):
        return None
    return Template("".join((*parts, rest)), tuple(values))


class Seen:
    """The templates that a session has seen: one is worth checking when it comes again, unless it was of no use."""

    def __init__(self) -> None:
        self._useful: dict[str, bool] = {}

    def is_worth(self, template: Template) -> bool:
        """Whether a statement with this template came before."""
        return self._useful.get(template.text, False)

    def note(self, template: Template, *, is_useful: bool) -> None:
        """A statement came, or was of no use as a template; then its template is not checked again."""
        is_useful = self._useful.pop(template.text, True) and is_useful
        while len(self._useful) >= limits.MAX_SQL_PLANS:
            del self._useful[next(iter(self._useful))]
        self._useful[template.text] = is_useful

    def clear(self) -> None:
        """Forget all."""
        self._useful.clear()
