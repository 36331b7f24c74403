"""Errors of statements as psql shows them: `ERROR:  text`, the line with a caret below the fault, DETAIL and HINT."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.sql.interface import SqlError

MOST_SHOWN = 60  # characters of a line on each side of the caret


def visible(text: str) -> str:
    """The text without control characters that a terminal would obey; line breaks and tabs stay."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in "\n\t" else escaped(each) for each in text)


def escaped(character: str) -> str:
    r"""A control character as psql writes it, such as \x1B."""
    code = ord(character)
    return f"\\x{code:02X}" if code < 256 else f"\\u{code:04X}"


def report(error: SqlError, text: str, where: str = "") -> str:
    """The lines for an error.

    Args:
        text: of the statement, which the position counts in.
        where: the place in a file, such as `a.sql:3`.
    """
    lines = [f"{where + ': ' if where else ''}ERROR:  {visible(error.message)}"]
    if error.position is not None and text.strip():
        lines += _excerpt(text, min(max(error.position, 1), len(text) + 1))
    if error.detail:
        lines.append(f"DETAIL:  {visible(error.detail)}")
    if error.hint:
        lines.append(f"HINT:  {visible(error.hint)}")
    return "\n".join(lines) + "\n"


def _excerpt(text: str, position: int) -> list[str]:
    before = text[: position - 1]
    number = before.count("\n") + 1
    start = before.rfind("\n") + 1
    end = text.find("\n", start)
    line = text[start : len(text) if end < 0 else end].replace("\t", " ")
    column = position - 1 - start
    cut = max(0, column - MOST_SHOWN)
    shown = ("..." if cut else "") + visible(line[cut : column + MOST_SHOWN]) + ("..." if len(line) > column + MOST_SHOWN else "")
    left = f"LINE {number}: " + ("..." if cut else "")
    return [f"LINE {number}: {shown}", " " * (len(left) + width(visible(line[cut:column]))) + "^"]


def width(text: str) -> int:
    """Columns of a terminal that the text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)
