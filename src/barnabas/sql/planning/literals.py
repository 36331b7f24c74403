"""Text literals as Postgres reads them, where DuckDB reads them otherwise: arrays in braces, moments in words, intervals.

Only literals are rewritten: the text of a column is read by DuckDB's rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas.sql.duck.types import duckdb_of
from barnabas.sql.interface import SqlError
from barnabas.sql.states import INVALID_TEXT

_MOMENTS = ("DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ", "TIMESTAMPLTZ", "DATETIME")
_QUANTIFIERS = {"all": exp.All, "some": exp.Any}
_DAYS = {"today": 0, "tomorrow": 1, "yesterday": -1}
_ZONES = {
    "UTC": "+00", "GMT": "+00", "Z": "+00", "EST": "-05", "EDT": "-04", "CST": "-06", "CDT": "-05", "MST": "-07", "MDT": "-06",
    "PST": "-08", "PDT": "-07", "CET": "+01", "CEST": "+02",
}  # fmt: skip
_MONTHS = {
    name: number
    for number, name in enumerate(["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1)
}
_REST = r"(?P<rest>[ T].*)?\Z"
_DATES = tuple(
    re.compile(text + _REST, re.IGNORECASE | re.DOTALL)
    for text in (
        r"(?P<month>[a-z]{3,9})[ \-](?P<day>\d{1,2})(?:, *| +|-)(?P<year>\d{4})",
        r"(?P<day>\d{1,2})[ \-](?P<month>[a-z]{3,9})[ \-](?P<year>\d{4})",
        r"(?P<year>\d{4})[ \-](?P<month>[a-z]{3,9})[ \-](?P<day>\d{1,2})",
        r"(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4})",
        r"(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})",
    )
)
_ZONE = re.compile(r"(?P<time>:\d\d(?:\.\d+)?) *(?:(?P<offset>[+-]\d{1,2}(?::?\d\d)?)|(?P<name>[A-Za-z]{1,4}))\Z")


def read_literals(tree: Any, *, is_spark: bool) -> None:
    """Rewrite the literals of a tree. Raises SqlError.

    Args:
        is_spark: whether a decimal without sizes has 10 digits and none of a fraction, instead of as many as its value.
    """
    for cast in tree.find_all(exp.Cast):
        if str(getattr(cast.to.this, "value", "")) == "DECIMAL" and not cast.to.expressions:
            precision, scale = (10, 0) if is_spark and not _is_number(cast.this) else sizes_of(cast.this)
            sizes = [exp.DataTypeParam(this=exp.convert(each)) for each in (precision, scale)]
            cast.to.set("expressions", sizes)
    for literal in list(tree.find_all(exp.Literal)):
        number, most = whole_number(literal), _MOST_BIGINT - (not isinstance(literal.parent, exp.Neg))
        if number is not None and number > most:
            literal.replace(exp.cast(literal.copy(), f"decimal({MOST_DIGITS}, 0)"))
    for call in list(tree.find_all(exp.Anonymous)):  # the parser knows ALL and SOME with a query only
        kind = _QUANTIFIERS.get(str(call.this).lower())
        if kind is not None and isinstance(call.parent, exp.Binary) and len(call.expressions) == 1:
            call.replace(kind(this=exp.Paren(this=call.expressions[0].copy())))
    for node in list(tree.find_all(exp.Cast)):
        literal = node.this.unnest()
        if isinstance(literal, exp.Literal) and literal.is_string:
            _read(node, literal)


def _is_number(node: Any) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string


_DIGITS = re.compile(r"\s*[+-]?(\d*)(?:\.(\d*))?\s*\Z")
_MOST_BIGINT = 1 << 63  # behind a minus
_BOOLEANS = {"true": "true", "false": "false", "yes": "true", "no": "false", "on": "true", "off": "false"}
MOST_DIGITS, USUAL_DIGITS, USUAL_FRACTION = 38, 18, 9  # of a decimal; of one that tells no sizes


def sizes_of(value: Any) -> tuple[int, int]:
    """Precision and scale that keep a value: those of a literal, and the usual ones for other expressions."""
    value = value.this if isinstance(value, (exp.Neg, exp.Paren)) else value
    found = _DIGITS.match(value.name) if isinstance(value, exp.Literal) else None
    if found is None:
        return MOST_DIGITS, USUAL_FRACTION
    scale = min(len(found[2] or ""), MOST_DIGITS)
    return min(MOST_DIGITS, max(USUAL_DIGITS, len(found[1]) + scale)), scale


def read_compared_arrays(tree: Any, type_of_other: Callable[[Any], pa.DataType | None] = lambda _: None) -> None:
    """Let the literal of `x = ANY ('{…}')` and `x <> ALL ('{…}')` be an array with elements of the type of `x`. Raises SqlError."""
    for node in list(tree.find_all(exp.Any, exp.All)):
        literal = node.this.unnest()
        if isinstance(literal, exp.Literal) and literal.is_string and literal.name.lstrip().startswith("{"):
            kind = type_of_other(node)
            array: Any = _array(array_of(literal.name))
            node.set("this", array if kind is None else exp.cast(array, duckdb_of(pa.list_(kind)), dialect="duckdb"))


def whole_number(node: Any) -> int | None:
    """The number of a literal with digits alone; None for anything else, and for more digits than a decimal has."""
    is_whole = isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal() and len(node.name) <= MOST_DIGITS
    return int(node.name) if is_whole else None


def _boolean(text: str) -> str:
    """Postgres' words for true and false, and their beginnings; any other text stays."""
    word = text.lower()
    if word in ("", "o"):
        return text
    return next((value for each, value in _BOOLEANS.items() if each.startswith(word)), text)


def _read(node: Any, literal: Any) -> None:
    word = str(getattr(node.to.this, "value", node.to.this))
    text = literal.name.strip()
    if word == "ARRAY" and text.startswith("{"):
        values = array_of(text)
        node.set("this", _array(values))
        for _ in range(_depth(values) - _dimensions(node.to)):
            node.set("to", exp.DataType(this=exp.DataType.Type.ARRAY, expressions=[node.to.copy()], nested=True))
    elif word in ("VARBINARY", "BINARY", "BLOB") and text.startswith("\\x"):
        digits = re.sub(r"\s+", "", text[2:])
        if len(digits) % 2 or not re.fullmatch(r"[0-9A-Fa-f]*", digits):
            raise SqlError(INVALID_TEXT, f'invalid hexadecimal data: "{text[:100]}"')
        node.set("this", exp.func("UNHEX", exp.Literal.string(digits)))
    elif word in ("VARBINARY", "BINARY", "BLOB") and ("\\" in literal.name or not literal.name.isascii()):
        node.set("this", exp.func("UNHEX", exp.Literal.string(_escaped_bytes(literal.name).hex())))
    elif word == "BOOLEAN":
        node.set("this", exp.Literal.string(_boolean(text)))
    elif word in _MOMENTS:
        day = _DAYS.get(text.lower())
        if day is not None:
            node.set("this", exp.Add(this=exp.CurrentDate(), expression=exp.convert(day)) if day else exp.CurrentDate())
        elif text.lower() == "now":
            node.set("this", exp.CurrentTimestamp())
        else:
            node.set("this", exp.Literal.string(moment_of(text)))


_ESCAPE = re.compile(rb"\\(?:\\|([0-3][0-7]{2})|.?)", re.DOTALL)


def _escaped_bytes(text: str) -> bytes:
    """Bytes of which some are written as a backslash and three octal digits. Raises SqlError."""

    def byte_of(found: re.Match[bytes]) -> bytes:
        if found[1] is not None:
            return bytes([int(found[1], 8)])
        if found[0] != b"\\\\":
            raise SqlError(INVALID_TEXT, "invalid input syntax for type bytea")
        return b"\\"

    return _ESCAPE.sub(byte_of, text.encode())


def moment_of(text: str) -> str:
    """A date with or without a time as ISO 8601 has it; other text stays as it is."""
    for form in _DATES:
        found = form.match(text)
        month = None if found is None else _MONTHS.get(found["month"].lower()[:3]) or _number(found["month"])
        if found is not None and month is not None:
            text = f"{found['year']}-{month:02d}-{int(found['day']):02d}{found['rest'] or ''}"
            break
    zone = _ZONE.search(text)
    if zone is None:
        return text
    offset = zone["offset"] or _ZONES.get(zone["name"].upper())
    return text if offset is None else f"{text[: zone.start()]}{zone['time']}{offset}"


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def array_of(text: str) -> list[Any]:
    """The elements of an array in braces, as texts, None, and lists of them. Raises SqlError 22P02."""
    values, at = _elements(text, _skipped(text, 0))
    if _skipped(text, at) != len(text):
        raise _malformed(text)
    return values


def _elements(text: str, at: int) -> tuple[list[Any], int]:
    if text[at : at + 1] != "{":
        raise _malformed(text)
    values: list[Any] = []
    at = _skipped(text, at + 1)
    if text[at : at + 1] == "}":
        return values, at + 1
    while True:
        value, at = _element(text, _skipped(text, at))
        values.append(value)
        at = _skipped(text, at)
        if text[at : at + 1] == "}":
            return values, at + 1
        if text[at : at + 1] != ",":
            raise _malformed(text)
        at += 1


_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_BARE = re.compile(r'(?:[^{}",\\]|\\.)+', re.DOTALL)


def _element(text: str, at: int) -> tuple[Any, int]:
    if text[at : at + 1] == "{":
        return _elements(text, at)
    if found := _QUOTED.match(text, at):
        return re.sub(r"\\(.)", r"\1", found[1], flags=re.DOTALL), found.end()
    found = _BARE.match(text, at)
    if found is None:
        raise _malformed(text)
    value = found[0].strip()
    return None if value.upper() == "NULL" else re.sub(r"\\(.)", r"\1", value, flags=re.DOTALL), found.end()


def _skipped(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _malformed(text: str) -> SqlError:
    return SqlError(INVALID_TEXT, f'malformed array literal: "{text[:100]}"')


def _array(values: list[Any]) -> exp.Array:
    cells = [_array(each) if isinstance(each, list) else exp.convert(each) for each in values]
    return exp.Array(expressions=cells)


def _depth(values: Any) -> int:
    return 1 + max(map(_depth, values), default=0) if isinstance(values, list) else 0


def _dimensions(kind: Any) -> int:
    return 1 + _dimensions(kind.expressions[0]) if kind.expressions and str(kind.this).endswith("ARRAY") else 0
