"""The types that a column of a table can have, and their names in SQL.

`json` and `uuid` are text with a mark in the metadata of the field: the libraries that read tables know text, and not all know Arrow's
extension types.

| type | in Arrow |
|---|---|
| boolean, tinyint … bigint, utinyint … ubigint | bool, int8 … int64, uint8 … uint64 |
| real, double, decimal(p, s) | float, double, decimal128 |
| text, json, uuid, binary | string, string with a mark, binary |
| date, time, timestamp_ntz, timestamptz | date32, time64[us], timestamp[us], timestamp[us, UTC] |
| interval | month_day_nano_interval |
| varchar, varchar(n), char(n) | string, with the word in the metadata |
| timestamp_ntz(n), timestamptz(n), time(n) | the type without a size, with the word in the metadata |
| T[], struct<name T, …>, map<K, V> | list, struct, map |
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as pt

from barnabas.schemas.arrow.shapes import MARK, MISSING, WORD, map_type
from barnabas.tables.errors import TableError

JSON, JSONB, UUID = "json", "jsonb", "uuid"
UTC = pa.timestamp("us", tz="UTC")
LOCAL = pa.timestamp("us")
TIME = pa.time64("us")
MAX_DIGITS = 38  # of a decimal
NAMES: dict[pa.DataType, str] = {
    pa.bool_(): "boolean", pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int", pa.int64(): "bigint",
    pa.uint8(): "utinyint", pa.uint16(): "usmallint", pa.uint32(): "uint", pa.uint64(): "ubigint", pa.float32(): "real",
    pa.float64(): "double", pa.string(): "text", pa.binary(): "binary", pa.date32(): "date", TIME: "time", LOCAL: "timestamp_ntz",
    UTC: "timestamptz", pa.month_day_nano_interval(): "interval",
}  # fmt: skip
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")

Field: TypeAlias = "pa.Field[Any]"


def json_field(name: str, word: str = JSON) -> Field:
    """A column of JSON text, by one of its names in SQL."""
    words = {} if word == JSON else {WORD: word.encode()}
    return pa.field(name, pa.string(), metadata={MARK: JSON.encode(), **words})


def uuid_field(name: str) -> Field:
    """A column of UUIDs, as text in lower case."""
    return pa.field(name, pa.string(), metadata={MARK: UUID.encode()})


def mark_of(field: Field) -> str:
    """`json`, `uuid` or an empty text."""
    return (field.metadata or {}).get(MARK, b"").decode()


def word_of(field: Field) -> str:
    """The name by which a type was declared, if the type says less: `jsonb`, `varchar(3)`."""
    return (field.metadata or {}).get(WORD, b"").decode()


def missing_of(field: Field) -> str | None:
    """The JSON of the value that a record without the field has; None: null."""
    found = (field.metadata or {}).get(MISSING)
    return None if found is None else found.decode()


def with_missing(field: Field, value: str | None) -> Field:
    """The field with the JSON of that value."""
    if value is None:
        return field
    metadata: dict[bytes | str, bytes | str] = {MISSING: value.encode()}
    metadata |= dict[bytes | str, bytes | str]((field.metadata or {}).items())
    return field.with_metadata(metadata)


def size_of(field: Field) -> tuple[str, int] | None:
    """The name and the size by which a column was declared: `varchar` or `char` with characters, a type of times with the digits behind
    the point; None without a size."""
    name, bracket, size = word_of(field).partition("(")
    return (name, int(size.removesuffix(")"))) if bracket else None


def table_field(field: Field, path: str = "") -> Field:
    """The field with a type that tables have, which holds all its values, and nullable.

    Raises:
        TableError: there is none.
    """
    path = path or field.name
    return pa.field(field.name, _table_type(field.type, path), nullable=True, metadata=field.metadata)


def _table_type(kind: Any, path: str) -> Any:  # noqa: C901 - one case for each type
    if kind in NAMES:
        return kind
    if pt.is_decimal(kind) and kind.precision <= MAX_DIGITS and 0 <= kind.scale <= kind.precision:
        return pa.decimal128(kind.precision, kind.scale)
    if pt.is_large_string(kind) or pt.is_string_view(kind):
        return pa.string()
    if pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind) or pt.is_binary_view(kind):
        return pa.binary()
    if pt.is_timestamp(kind):
        return LOCAL if kind.tz is None else UTC
    if pt.is_date(kind):
        return pa.date32()
    if pt.is_time(kind):
        return TIME
    if pt.is_float16(kind):
        return pa.float32()
    if pt.is_dictionary(kind):
        return _table_type(kind.value_type, path)
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        return pa.list_(table_field(kind.value_field, f"{path}[]").with_name("item"))
    if pt.is_struct(kind) and kind.num_fields:
        return pa.struct([table_field(each, f"{path}.{each.name}") for each in kind])
    if pt.is_map(kind) and (pt.is_string(kind.key_type) or pt.is_integer(kind.key_type)):
        return map_type(kind.key_type, table_field(kind.item_field, f"{path}[]").with_name("value"))
    raise TableError(f"the column {path} cannot have the type {kind}; " + SUPPORTED)


SUPPORTED = (
    "columns are boolean, whole numbers, real, double, decimal up to 38 digits, text, json, uuid, binary, date, time, timestamps, "
    "interval, lists, structs, and maps with keys of text or whole numbers"
)


def type_name(field: Field) -> str:
    """The type as `declared` reads it. Raises TableError for a type that tables do not have."""
    kind = field.type
    word = word_of(field) or mark_of(field)
    if word:
        return word
    if kind in NAMES:
        return NAMES[kind]
    if pt.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pt.is_list(kind):
        return f"{type_name(kind.value_field)}[]"
    if pt.is_struct(kind):
        return f"struct<{columns_text(list(kind))}>"
    if pt.is_map(kind):
        return f"map<{type_name(kind.key_field)}, {type_name(kind.item_field)}>"
    return type_name(table_field(field))


def columns_text(fields: list[Field] | tuple[Field, ...]) -> str:
    """Columns as text, such as `id bigint, name text`; `declared` reads it."""
    return ", ".join(
        f"{quoted(each.name)} {type_name(each)}{'' if each.nullable else ' not null'}{missing_text(missing_of(each))}"
        for each in fields
    )


def missing_text(value: str | None) -> str:
    """The clause of a declaration that gives the value of records without the field; empty for null."""
    return "" if value is None else " default '" + value.replace("'", "''") + "'"


def quoted(name: str) -> str:
    """The name, in quotation marks if it is no plain word."""
    return name if _PLAIN_NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'
