"""Tables as the binary log describes them, before the changes of each: names and types of columns, and the key, as they were then.

The server's catalog has the tables as they are now, which says nothing about changes that were made before.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pymysqlreplication.constants import FIELD_TYPE

NOTHING = datetime.timedelta()
BINARY = ("binary", None)  # names of a character set of bytes
_INTEGERS: Mapping[int, str] = {
    FIELD_TYPE.TINY: "tinyint", FIELD_TYPE.SHORT: "smallint", FIELD_TYPE.INT24: "mediumint", FIELD_TYPE.LONG: "int",
    FIELD_TYPE.LONGLONG: "bigint",
}  # fmt: skip
_TIMES: Mapping[int, str] = {
    FIELD_TYPE.DATETIME2: "datetime", FIELD_TYPE.TIMESTAMP2: "timestamp", FIELD_TYPE.TIME2: "time", FIELD_TYPE.DATETIME: "datetime",
    FIELD_TYPE.TIMESTAMP: "timestamp", FIELD_TYPE.TIME: "time",
}  # fmt: skip
_OTHERS: Mapping[int, str] = {
    FIELD_TYPE.DATE: "date", FIELD_TYPE.YEAR: "year", FIELD_TYPE.FLOAT: "float", FIELD_TYPE.DOUBLE: "double", FIELD_TYPE.ENUM: "enum",
    FIELD_TYPE.SET: "set", FIELD_TYPE.JSON: "json", FIELD_TYPE.GEOMETRY: "geometry",
}  # fmt: skip
_TEXTS: Mapping[int, tuple[str, str]] = {  # of characters, and of bytes
    FIELD_TYPE.VARCHAR: ("varchar", "varbinary"), FIELD_TYPE.VAR_STRING: ("varchar", "varbinary"),
    FIELD_TYPE.STRING: ("char", "binary"), FIELD_TYPE.BLOB: ("text", "blob"),
}  # fmt: skip
_COMMENT = r"(?:\s|/\*(?!!).*?\*/|--\s[^\n]*\n|\#[^\n]*\n)*"
_NAME = r"(?:`((?:[^`]|``)+)`|([\w$]+))"
_TRUNCATE = re.compile(
    rf"{_COMMENT}(?:SET\s+STATEMENT\s.*?\sFOR\s+)?TRUNCATE\s+(?:TABLE\s+)?{_NAME}(?:\s*\.\s*{_NAME})?", re.IGNORECASE | re.DOTALL
)


class LoggedTable(NamedTuple):
    """A table when changes of it were made.

    Args:
        declared: the types of its columns, as `forms.py` takes them.
        key: the names of the columns of the primary key, in its order.
        required: the names of the columns that are NOT NULL.
    """

    database: str
    table: str
    names: tuple[str, ...]
    declared: tuple[str, ...]
    key: tuple[str, ...]
    required: frozenset[str] = frozenset()


def table_of(event: Any) -> LoggedTable:
    """The table of a TableMapEvent."""
    columns, meta = event.columns, event.optional_metadata
    places = list(meta.simple_primary_key_list) or list(meta.primary_keys_with_prefix)
    names = tuple(each.name for each in columns)
    key, bits = tuple(names[place] for place in places), event.null_bitmask
    required = frozenset(name for place, name in enumerate(names) if not bits[place >> 3] >> (place & 7) & 1)
    return LoggedTable(event.schema, event.table, names, tuple(map(declared, columns)), key, required)


def declared(column: Any) -> str:
    """The type of a column of the log as a declaration has it."""
    kind = column.type
    if kind in _INTEGERS:
        return f"{_INTEGERS[kind]} unsigned" if column.unsigned else _INTEGERS[kind]
    if kind in _TIMES:
        return f"{_TIMES[kind]}({getattr(column, 'fsp', 0)})"
    if kind in _TEXTS:
        name = _TEXTS[kind][column.character_set_name in BINARY]
        return f"binary({column.max_length})" if name == "binary" else name
    if kind == FIELD_TYPE.NEWDECIMAL:
        return f"decimal({column.precision},{column.decimals})"
    if kind == FIELD_TYPE.BIT:
        return f"bit({column.bits})"
    if kind in {FIELD_TYPE.ENUM, FIELD_TYPE.SET}:
        words = column.enum_values[1:] if kind == FIELD_TYPE.ENUM else column.set_values
        return f"{_OTHERS[kind]}({','.join(quoted_text(each) for each in words)})"
    return _OTHERS.get(kind, "text")


def quoted_text(text: str) -> str:
    """A text as a declaration has it."""
    return "'" + text.replace("'", "''") + "'"


def times_of(columns: Sequence[Any]) -> frozenset[str]:
    """The names of columns of the log whose values `right_time` mends."""
    return frozenset(each.name for each in columns if each.type == FIELD_TYPE.TIME2 and each.fsp)


def right_time(value: Any) -> Any:
    """A time of the log as it is: the library reads -(seconds + 1 - fraction) for -(seconds + fraction)."""
    if value is None or value >= NOTHING or not value.microseconds:
        return value
    second = datetime.timedelta(seconds=1)
    behind = -value // second + 1  # the next whole second
    return -((behind - 1) * second + (behind * second + value))


def truncated(statement: str, database: str) -> tuple[str, str] | None:
    """Database and table that a statement empties; None for another statement.

    Args:
        database: that the statement was made in.
    """
    found = _TRUNCATE.match(statement)
    if found is None:
        return None
    names: Sequence[str] = [
        (quoted or plain).replace("``", "`") for quoted, plain in (found.group(1, 2), found.group(3, 4)) if quoted or plain
    ]
    return (names[0], names[1]) if len(names) == 2 else (database, names[0])
