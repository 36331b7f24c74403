"""The defaults of columns of MariaDB and MySQL as values, as Debezium reads them.

An expression is none of them. In place of one, and of the day 0, a column of days or moments has 1970 if it is required.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

import pyarrow as pa

from barnabas.connect.plugins.debezium.table_columns import nothing_of
from barnabas.connect.plugins.mysql_capture.forms import EPOCH, Form

_LITERAL = re.compile(r"'(.*)'", re.DOTALL)
_ESCAPED = re.compile(r"''|\\(.)", re.DOTALL)
_BITS = re.compile(r"b'([01]*)'|([0-9]+)")
_NUMBER = re.compile(r"-?[0-9.]+(?:e[+-]?[0-9]+)?", re.IGNORECASE)
_TIME = re.compile(r"(-?)([0-9]+):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?")
_NOW = re.compile(r"(?:current_timestamp|now)(?:\(\))?", re.IGNORECASE)
_LETTERS = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "Z": "\x1a"}
_TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "json")
_MOMENTS = ("date", "datetime", "timestamp")
_WHOLE = ("tinyint", "smallint", "mediumint", "int", "bigint", "year")


class Declared(NamedTuple):
    """The default of a column in the catalog.

    Args:
        text: of the value, or of the expression.
        is_value: whether it is a value.
    """

    text: str
    is_value: bool


def declared_default(text: str, extra: str, *, is_mariadb: bool) -> Declared | None:
    """What the catalog has as default of a column; None for null.

    Args:
        text: MariaDB has literals in it, and MySQL their values.
        extra: of the column.
    """
    if not is_mariadb:
        return Declared(text, "DEFAULT_GENERATED" not in extra)
    if text.upper() == "NULL":
        return None
    literal = _LITERAL.fullmatch(text)
    if literal is not None:
        return Declared(
            _ESCAPED.sub(lambda found: "'" if found[1] is None else _LETTERS.get(found[1], found[1]), literal[1]), True
        )
    return Declared(text, _NUMBER.fullmatch(text) is not None or _BITS.fullmatch(text) is not None)


def default_of(found: Declared | None, declared: str, form: Form, *, is_required: bool) -> Any:
    """The default as an array of one value; None for none.

    Args:
        declared: the type of the column.
    """
    kind = declared.partition("(")[0].split(" ")[0].lower()
    if found is None or (kind not in _READERS and kind not in _TEXTS):
        return None
    if kind in _MOMENTS and not (found.is_value and not found.text.startswith("0000-00-00")):
        is_now = kind == "datetime" and not found.is_value and _NOW.fullmatch(found.text) is not None
        if not (is_required or is_now):
            return None
        if kind == "timestamp":
            return nothing_of(form.kind, form.name)
        found = Declared("1970-01-01", True)
    if not found.is_value:
        return None
    try:
        value = _READERS[kind](found.text) if kind in _READERS else found.text
        return form.column([value])
    except (ValueError, TypeError, AttributeError, OverflowError, InvalidOperation, pa.ArrowException):
        return None


def _bits(text: str) -> str:
    found = _BITS.fullmatch(text)
    if found is None:
        raise ValueError(f"{text} are no bits")
    return found[1] if found[1] is not None else f"{int(found[2]):b}"


def _time(text: str) -> datetime.timedelta:
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(f"{text} is no time")
    sign, hours, minutes, seconds, fraction = found.groups()
    micros = int((fraction or "").ljust(6, "0"))
    value = datetime.timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds), microseconds=micros)
    return -value if sign else value


def _date(text: str) -> datetime.date:
    return datetime.date.fromisoformat(text[:10])


_READERS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(_WHOLE, int), "decimal": Decimal, "numeric": Decimal, "float": float, "double": float, "real": float, "bit": _bits,
    "date": _date, "time": _time, "datetime": datetime.datetime.fromisoformat, "timestamp": datetime.datetime.fromisoformat,
}  # fmt: skip
assert EPOCH.tzinfo is None  # moments without a zone, as the values are
