"""PostgreSQL's texts of arrays and of hstore."""

from __future__ import annotations

import re

_ELEMENT = re.compile(r'"((?:[^"\\]|\\.)*)"|([^{},"]+)', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_PAIR = re.compile(r'"((?:[^"\\]|\\.)*)"=>(?:"((?:[^"\\]|\\.)*)"|NULL)', re.DOTALL)
_BOUNDS = re.compile(r"(?:\[[-0-9:]+\])+=")


def elements(text: str) -> list[str | None]:
    """The elements of an array. Those of an array of several dimensions come in one list, as `unnest` has them."""
    begin = _BOUNDS.match(text)
    found: list[str | None] = []
    for match in _ELEMENT.finditer(text, begin.end() if begin else 0):
        if match[1] is not None:
            found.append(_ESCAPE.sub(r"\1", match[1]))
        else:
            plain = match[2]
            found.append(None if plain == "NULL" else _ESCAPE.sub(r"\1", plain))
    return found


def pairs(text: str) -> dict[str, str | None]:
    """Keys and values of an hstore."""
    return {
        _ESCAPE.sub(r"\1", match[1]): None if match[2] is None else _ESCAPE.sub(r"\1", match[2])
        for match in _PAIR.finditer(text)
    }  # fmt: skip
