"""Rows of a query as tables of Arrow, part by part."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

from barnabas.connect.plugins.databases.database import Database

STAMP: Any = pa.timestamp("us", "UTC")
_POSTGRES: dict[int, Any] = {
    16: pa.bool_(), 17: pa.binary(), 20: pa.int64(), 21: pa.int16(), 23: pa.int32(), 26: pa.int64(), 700: pa.float32(),
    701: pa.float64(), 1082: pa.date32(), 1083: pa.time64("us"), 1114: STAMP, 1184: STAMP,
}  # fmt: skip
_MYSQL: dict[int, Any] = {
    1: pa.int16(), 2: pa.int32(), 3: pa.int64(), 9: pa.int32(), 4: pa.float32(), 5: pa.float64(), 7: STAMP, 10: pa.date32(),
    12: STAMP, 13: pa.int16(), 16: pa.binary(), 245: pa.string(),
}  # fmt: skip
_POSTGRES_NUMERIC, _MYSQL_DECIMAL = 1700, 246
_SQLITE = (
    ("INT", pa.int64()), ("CHAR", pa.string()), ("CLOB", pa.string()), ("TEXT", pa.string()), ("BLOB", pa.binary()),
    ("REAL", pa.float64()), ("FLOA", pa.float64()), ("DOUB", pa.float64()),
)  # fmt: skip
_DUCKDB = {
    "BOOLEAN": pa.bool_(), "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INTEGER": pa.int32(), "BIGINT": pa.int64(),
    "FLOAT": pa.float32(), "DOUBLE": pa.float64(), "VARCHAR": pa.string(), "BLOB": pa.binary(), "DATE": pa.date32(),
    "TIME": pa.time64("us"), "TIMESTAMP": STAMP, "TIMESTAMP WITH TIME ZONE": STAMP,
}  # fmt: skip

MOST_ROWS, PART_BYTES = 5_000, 1 << 20  # of a part, unless the caller wants more rows at once

_DUCKDB_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")


class Described(NamedTuple):
    """A column of a result. Its kind is None where the values tell it."""

    name: str
    kind: Any


def parts_of(
    database: Database, statement: str, parameters: Sequence[Any], rows: int, declared: dict[str, str],
    zone: datetime.tzinfo,
) -> Iterator[pa.Table]:  # fmt: skip
    """The rows of a query, part by part.

    Args:
        rows: of the first part. Narrow rows come more at a time, because each part takes time of its own.
        declared: types of columns; SQLite's results have none themselves.
        zone: of times without one.

    Raises:
        ConnectError: the database refuses the query, or cannot be reached.
    """
    with database.translated():
        cursor = database.streaming_cursor()
        try:
            cursor.execute(statement, tuple(parameters))
            columns = [_described(database.address.kind, each, declared) for each in cursor.description or []]
            count = rows
            while found := cursor.fetchmany(count):
                part = _table(columns, found, zone)
                count = max(rows, min(MOST_ROWS, PART_BYTES * part.num_rows // max(part.nbytes, 1)))
                yield part
        finally:
            cursor.close()


def _described(kind: str, description: Any, declared: dict[str, str]) -> Described:
    name, code = description[0], description[1]
    match kind:
        case "postgresql":
            if code == _POSTGRES_NUMERIC:
                return Described(name, _decimal(description[4], description[5]))
            return Described(name, _POSTGRES.get(code, pa.string()))
        case "mysql":
            if code == _MYSQL_DECIMAL:
                return Described(name, _decimal(description[4], description[5]))
            return Described(name, _MYSQL.get(code))
        case "duckdb":
            exact = _DUCKDB_DECIMAL.fullmatch(str(code))
            return Described(name, _decimal(int(exact[1]), int(exact[2])) if exact else _DUCKDB.get(str(code)))
    text = declared.get(name, "").upper()
    return Described(name, next((arrow for part, arrow in _SQLITE if part in text), None))


def _decimal(precision: int | None, scale: int | None) -> Any:
    """Decimals without a precision are texts, because a type of Arrow has one scale."""
    if precision is None or scale is None or not 0 <= scale <= precision <= 76:
        return pa.string()
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)


def _table(columns: Sequence[Described], rows: Sequence[Sequence[Any]], zone: datetime.tzinfo) -> pa.Table:
    values = zip(*rows, strict=True)
    arrays = [_array(list(each), column.kind, zone) for column, each in zip(columns, values, strict=True)]
    return pa.table(arrays, names=[each.name for each in columns])


def _array(values: list[Any], kind: Any, zone: datetime.tzinfo) -> Any:
    if kind is not None and pa.types.is_timestamp(kind):
        values = _in_zone(_without_texts(values), zone)
    elif kind is not None and pa.types.is_string(kind):
        values = [_text(each) for each in values]
    elif kind is not None and pa.types.is_date(kind):
        values = _without_texts(values)
    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([_text(each) for each in values], pa.string())


def _without_texts(values: list[Any]) -> list[Any]:
    """Times; null for what is none, such as MySQL's 0000-00-00, of which the driver makes a text."""
    return [None if isinstance(each, str) else each for each in values] if str in map(type, values) else values


def _in_zone(values: list[Any], zone: datetime.tzinfo) -> list[Any]:
    """Times of one column with their zone."""
    some = next((each for each in values if each is not None), None)
    if some is None or some.tzinfo is not None or zone == datetime.UTC or str(zone) == "UTC":
        return values  # Arrow takes a time without a zone as one in UTC
    return [each if each is None else each.replace(tzinfo=zone) for each in values]


def _text(value: Any) -> str | None:
    match value:
        case None | str():
            return value
        case dict() | list():
            return json.dumps(value, default=str)
        case Decimal():
            return format(value, "f")
        case bytes():
            return value.hex()
    return str(value)
