"""Statements about cursors and prepared statements, which the protocol itself serves: a cursor is a portal of the connection.

    DECLARE name [BINARY] [INSENSITIVE] [[NO] SCROLL] CURSOR [WITH | WITHOUT HOLD] FOR query
    FETCH | MOVE [NEXT | FORWARD [n | ALL] | n | ALL | RELATIVE n] [FROM | IN] name
    CLOSE name | ALL
    DEALLOCATE [PREPARE] name | ALL
    DISCARD ALL
    UNLISTEN name | *                    nobody can listen, but asyncpg's pools send it after each use of a connection

All other statements are the engine's.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from barnabas.sql.interface import SqlError

_COMMENT = r"(?:\s+|--[^\n]*(?:\n|$)|/\*(?:[^*]|\*(?!/))*\*/)*"
_FIRST = re.compile(_COMMENT + r"(\w+)")
_NAME = r'(?P<name>"(?:[^"]|"")+"|[A-Za-z_\u0080-\uffff][\w$]*)'
_END = r"\s*;?\s*$"
_DECLARE = re.compile(
    _COMMENT + rf"declare\s+{_NAME}(?P<options>(?:\s+(?:binary|asensitive|insensitive|no\s+scroll|scroll))*)\s+cursor"
    r"(?:\s+(?P<hold>with|without)\s+hold)?\s+for\s+(?P<query>.+)$", re.IGNORECASE | re.DOTALL,
)  # fmt: skip
_FETCH = re.compile(
    _COMMENT + r"(?P<verb>fetch|move)\b\s*(?P<way>next|prior|first|last|absolute\s+[+-]?\d+|relative\s+[+-]?\d+|(?:forward|backward)"
    rf"(?:\s+(?:\d+|all))?|[+-]?\d+|all)?\s*(?:\b(?:from|in)\b)?\s*{_NAME}{_END}", re.IGNORECASE | re.DOTALL,
)  # fmt: skip
_CLOSE = re.compile(_COMMENT + rf"close\s+{_NAME}{_END}", re.IGNORECASE | re.DOTALL)
_DEALLOCATE = re.compile(_COMMENT + rf"deallocate\s+(?:prepare\s+)?{_NAME}{_END}", re.IGNORECASE | re.DOTALL)
_UNLISTEN = re.compile(_COMMENT + rf"unlisten\s*(?:\*|{_NAME}){_END}", re.IGNORECASE | re.DOTALL)
_DISCARD = re.compile(_COMMENT + rf"discard\s+{_NAME}{_END}", re.IGNORECASE | re.DOTALL)


class Declare(NamedTuple):
    """A cursor; `at` is where its query begins in the text."""

    name: str
    query: str
    at: int
    binary: bool
    holds: bool


class Fetch(NamedTuple):
    """The next rows of a cursor, 0 for none and None for all; a move drops them."""

    name: str
    rows: int | None
    moves: bool


class CloseCursor(NamedTuple):
    """One cursor, or None for all."""

    name: str | None


class Deallocate(NamedTuple):
    """One prepared statement, or None for all."""

    name: str | None


class DiscardAll(NamedTuple):
    """Everything of the session."""


class Unlisten(NamedTuple):
    """Does nothing."""


Action = Declare | Fetch | CloseCursor | Deallocate | DiscardAll | Unlisten


def first_word(text: str) -> str:
    """Of a statement, in upper case."""
    found = _FIRST.match(text)
    return found[1].upper() if found else ""


def action_of(text: str) -> Action | None:
    """The action of a statement about cursors or prepared statements; None for others. Raises SqlError 42601 and 55000."""
    word = first_word(text)
    if word == "DECLARE":
        return _declare(text)
    if word in ("FETCH", "MOVE"):
        return _fetch(text, word)
    if word == "CLOSE":
        return CloseCursor(_name_or_all(_CLOSE, text, word))
    if word == "DEALLOCATE":
        return Deallocate(_name_or_all(_DEALLOCATE, text, word))
    if word == "UNLISTEN" and _UNLISTEN.match(text):
        return Unlisten()
    if word == "DISCARD" and (found := _DISCARD.match(text)) and found["name"].upper() == "ALL":
        return DiscardAll()
    return None


def _declare(text: str) -> Declare:
    found = _DECLARE.match(text)
    if found is None:
        raise _unreadable("DECLARE", "DECLARE name [BINARY] CURSOR [WITH HOLD] FOR query")
    options = found["options"].lower().split()
    return Declare(
        _plain(found["name"]), found["query"], found.start("query"), "binary" in options, (found["hold"] or "").lower() == "with"
    )


def _fetch(text: str, word: str) -> Fetch:
    found = _FETCH.match(text)
    if found is None:
        raise _unreadable(word, f"{word} [NEXT | FORWARD n | ALL] FROM name")
    way = (found["way"] or "next").lower().split()
    name = _plain(found["name"])
    if way[-1] == "all" and way[0] in ("all", "forward"):
        return Fetch(name, None, word == "MOVE")
    number = int(way[-1]) if way[-1].lstrip("+-").isdigit() else 1
    if way[0] in ("prior", "backward", "first", "last", "absolute") or number < 0:
        raise SqlError("55000", "cursor can only scan forward", hint="Use FETCH NEXT or FETCH FORWARD n.")
    if way[0] == "relative" and number > 1:
        raise SqlError("55000", "cursor can only scan forward one row by RELATIVE", hint="Use FETCH FORWARD n.")
    return Fetch(name, number, word == "MOVE")


def _name_or_all(pattern: re.Pattern[str], text: str, word: str) -> str | None:
    found = pattern.match(text)
    if found is None:
        raise _unreadable(word, f"{word} name, or {word} ALL")
    return None if found["name"].upper() == "ALL" else _plain(found["name"])


def _plain(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def _unreadable(word: str, wanted: str) -> SqlError:
    return SqlError("42601", f"syntax error in {word}", hint=f"The server reads: {wanted}.")
