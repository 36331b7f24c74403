r"""Reads the line of a `\copy`."""

from __future__ import annotations

import re
from typing import NamedTuple

from barnabas.cli.sql.scanner import Kind, tokens

_FILE = re.compile(r"\s*(from|to)\s+('(?:[^']|'')*'|[^\s;]+)\s*(.*)", re.IGNORECASE | re.DOTALL)


class Copy(NamedTuple):
    """The statement that is sent, the file of this machine, and whether the file is read."""

    statement: str
    path: str
    is_from: bool


def parse_copy(text: str) -> Copy | None:
    r"""The parts of a `\copy`; None if it is not complete."""
    end = _end_of_source(text)
    found = _FILE.fullmatch(text, end)
    source = text[:end].strip()
    if found is None or not source:
        return None
    is_from = found[1].lower() == "from"
    path = found[2][1:-1].replace("''", "'") if found[2].startswith("'") else found[2]
    options = found[3].strip().rstrip(";")
    place = "FROM STDIN" if is_from else "TO STDOUT"
    return Copy(f"COPY {source} {place} {options}".strip(), path, is_from)


def _end_of_source(text: str) -> int:
    """Where the table, its columns or the query end: at the first FROM or TO outside of brackets."""
    depth = 0
    for token in tokens(text):
        word = text[token.start : token.end]
        depth += (word == "(") - (word == ")")
        if not depth and token.kind is Kind.WORD and word.lower() in ("from", "to"):
            return token.start
    return len(text)
