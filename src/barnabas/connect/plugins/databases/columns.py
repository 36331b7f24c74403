"""Columns of Arrow in the form in which databases take them: plain types, and JSON for nested values."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.errors import ConnectError

if TYPE_CHECKING:
    Array = pa.Array[Any]

types: Any = pa.types


class Sort(StrEnum):
    """The sorts of columns that databases have types for."""

    BOOLEAN = "boolean"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    DECIMAL = "decimal"
    STRING = "string"
    BYTES = "bytes"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    JSON = "json"


_SORTS: dict[Any, Sort] = {
    pa.bool_(): Sort.BOOLEAN, pa.int8(): Sort.INT8, pa.int16(): Sort.INT16, pa.int32(): Sort.INT32, pa.int64(): Sort.INT64,
    pa.uint8(): Sort.INT16, pa.uint16(): Sort.INT32, pa.uint32(): Sort.INT64, pa.uint64(): Sort.DECIMAL, pa.null(): Sort.STRING,
    pa.float16(): Sort.FLOAT32, pa.float32(): Sort.FLOAT32, pa.float64(): Sort.FLOAT64,
}  # fmt: skip
_CHECKS = (
    (types.is_decimal, Sort.DECIMAL), (types.is_string, Sort.STRING), (types.is_large_string, Sort.STRING),
    (types.is_string_view, Sort.STRING), (types.is_binary, Sort.BYTES), (types.is_large_binary, Sort.BYTES),
    (types.is_fixed_size_binary, Sort.BYTES), (types.is_date, Sort.DATE), (types.is_time, Sort.TIME),
    (types.is_timestamp, Sort.TIMESTAMP), (types.is_nested, Sort.JSON),
)  # fmt: skip


def sort_of(kind: Any) -> Sort:
    """The sort of a type. Raises ConnectError for one that no database has."""
    if types.is_dictionary(kind):
        return sort_of(kind.value_type)
    if kind in _SORTS:
        return _SORTS[kind]
    for fits, sort in _CHECKS:
        if fits(kind):
            return sort
    raise ConnectError(f"columns of the type {kind} cannot be written to a database")


def plain_columns(rows: pa.Table, timezone: str = "UTC") -> pa.Table:
    """The same rows in plain types.

    Args:
        timezone: of the timestamps in the result, which have none themselves.
    """
    return pa.table(
        [_plain(rows.column(at), timezone) for at in range(rows.num_columns)], names=rows.column_names
    )  # fmt: skip


def _plain(column: Any, timezone: str) -> Any:
    kind = column.type
    if types.is_dictionary(kind):
        return _plain(column.cast(kind.value_type), timezone)
    match sort_of(kind):
        case Sort.JSON:
            return json_texts(column)
        case Sort.TIMESTAMP:
            return _local(column, timezone)
        case Sort.STRING:
            return column.cast(pa.string())
        case Sort.BYTES:
            return column.cast(pa.binary())
        case Sort.DECIMAL if types.is_uint64(kind):
            return column.cast(pa.decimal128(20, 0))
        case Sort.FLOAT32:
            return column.cast(pa.float32())
        case Sort.DATE:
            return column.cast(pa.date32())
        case Sort.TIME:
            return column.cast(pa.time64("us"))
    return column


def _local(column: Any, timezone: str) -> Any:
    if column.type.tz is None:
        return column.cast(pa.timestamp("us"), safe=False)
    local: Any = pc.local_timestamp(column.cast(pa.timestamp("us", timezone), safe=False))
    return local


def json_texts(column: Any) -> Array:
    """Nested values as JSON: times in ISO 8601, bytes in base64."""
    values = column.to_pylist(maps_as_pydicts="lossy")
    return pa.array([None if each is None else msgspec.json.encode(each).decode() for each in values], pa.string())


def last_of_each(rows: pa.Table, keys: list[str]) -> Array:
    """The numbers of the rows that are the last ones with their keys, in order."""
    numbered = rows.select(keys).append_column("row number", pa.array(range(rows.num_rows), pa.int64()))
    last: Array = numbered.group_by(keys).aggregate([("row number", "max")]).column("row number_max").combine_chunks()
    return last.sort()
