"""Columns to fields of rows: for each type a writer of one value and, where Arrow can do it, one of whole columns.

Both give the same bytes. A writer of columns returns None for a column with a value that it cannot write, such as a date before
Christ; then its values are written one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from barnabas.sql.duck.types import HEADER_BYTES, UNBOUND
from barnabas.sql.postgres import binary_format, bulk_binary, bulk_text, text_format
from barnabas.sql.postgres.arrays import Array, Field
from barnabas.sql.postgres.documents import document
from barnabas.sql.postgres.messages import BINARY
from barnabas.sql.postgres.text_format import Write
from barnabas.sql.postgres.types import NUMBERS, TEXTS, TYPES, VECTORS, Described, PgType, describe
from barnabas.sql.postgres.values import Values, values_of

Bulk = Callable[[Array], Array | None]  # to an array of binary, nulls stay


@dataclass(frozen=True, slots=True)
class Codec:
    """How a column is written in one format."""

    described: Described
    format: int
    values: Values
    write: Write
    bulk: Bulk | None = None


def codec_of(field: Field, form: int, zone: tzinfo = UTC) -> Codec:
    """For a column in a format; timestamps with a zone are shown in `zone`."""
    described, kind = describe(field), field.type
    element, inner = described.element, _innermost(kind)
    values = values_of(kind, lambda struct: _values_of_record(_parts(struct, form, zone)))
    if kinds.is_null(kind):
        return Codec(described, form, values, text_format.string)
    write: Write
    if kinds.is_struct(inner):
        write, bulk = _record(_parts(inner, form, zone), form), None
    else:
        write, bulk = _binary(element, inner) if form == BINARY else _text(element, inner, zone)
    if element.name == "bpchar" and described.modifier > HEADER_BYTES:
        size = described.modifier - HEADER_BYTES
        write, bulk = text_format.padded(size), bulk_text.padded(size)
    plain = Codec(described, form, values, write, bulk)
    if not _has_lists(kind):
        return plain
    if element.name in VECTORS:
        number = TYPES["int2" if element.name == "int2vector" else "oid"]
        vector = _vector(number, form)
        return replace(plain, write=vector, bulk=None)
    if form == BINARY:
        return replace(plain, write=binary_format.array(element.oid, write), bulk=None)
    return replace(plain, write=text_format.array(write), bulk=None)


def _parts(kind: Any, form: int, zone: tzinfo) -> list[Codec]:
    """The values of a record, each in the format of its type."""
    return [codec_of(kind.field(at), form, zone) for at in range(kind.num_fields)]


def _values_of_record(parts: Sequence[Codec]) -> Values:
    def values(array: Any) -> list[Any]:
        columns = [part.values(column) for part, column in zip(parts, array.flatten(), strict=True)]
        rows = list(zip(*columns, strict=True)) if columns else [()] * len(array)
        return [row if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]

    return values


def _record(parts: Sequence[Codec], form: int) -> Write:
    writes = [part.write for part in parts]
    if form == BINARY:
        return binary_format.record(writes, [part.described.oid for part in parts])
    return text_format.record(writes)


def _vector(number: PgType, form: int) -> Write:
    if form != BINARY:
        return text_format.vector
    write = binary_format.packed(">h" if number.size == 2 else ">I")
    return binary_format.array(number.oid, write, lower_bound=0)


def _has_lists(kind: pa.DataType) -> bool:
    return kind != _innermost(kind)


def _innermost(kind: pa.DataType) -> pa.DataType:
    while (
        hasattr(kind, "value_type")
        and not kinds.is_dictionary(kind)
        and not kinds.is_map(kind)
        and not kinds.is_run_end_encoded(kind)
    ):
        kind = kind.value_type
    return kind


def _text(element: PgType, kind: pa.DataType, zone: tzinfo) -> tuple[Write, Bulk | None]:
    name = element.name
    if kinds.is_dictionary(kind) or kinds.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
        return (_uuid_text if isinstance(kind, pa.UuidType) else text_format.string), bulk_text.dictionary(kind)
    if name == "jsonb":
        return document, None
    if kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind):
        return text_format.string, bulk_text.string
    if name == "timestamptz":
        return text_format.timestamptz(zone), bulk_text.timestamptz(zone)
    if kinds.is_duration(kind) or kinds.is_interval(kind):
        return text_format.interval, None
    if kind in UNBOUND:
        return text_format.unbound_numeric, bulk_text.unbound_numeric
    return _TEXTS.get(name, (text_format.integer, bulk_text.plain))


def _uuid_text(value: bytes) -> bytes:
    shown = value.hex()
    return f"{shown[:8]}-{shown[8:12]}-{shown[12:16]}-{shown[16:20]}-{shown[20:]}".encode()


_TEXTS: dict[str, tuple[Write, Bulk | None]] = {
    "bool": (text_format.boolean, bulk_text.boolean),
    "bytea": (text_format.bytea, bulk_text.bytea),
    "float4": (text_format.float4, bulk_text.float4),
    "float8": (text_format.float8, bulk_text.float8),
    "numeric": (text_format.numeric, bulk_text.numeric),
    "date": (text_format.date, bulk_text.date),
    "time": (text_format.time, bulk_text.time),
    "timestamp": (text_format.timestamp, bulk_text.timestamp),
}


def _binary(element: PgType, kind: pa.DataType) -> tuple[Write, Bulk | None]:
    name = element.name
    if name == "jsonb":
        return binary_format.jsonb, None
    if name == "uuid" and isinstance(kind, pa.UuidType):
        return binary_format.raw, None
    if kinds.is_dictionary(kind) or kinds.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
        return text_format.string, bulk_text.dictionary(kind)
    if kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind):
        return _STRINGS.get(name, (text_format.string, bulk_text.string))
    if name in NUMBERS:
        return binary_format.packed(">I"), bulk_binary.number(">u4")
    if name in TEXTS:
        return text_format.integer, bulk_text.plain
    if kind in UNBOUND:
        return binary_format.unbound_numeric, None
    return _BINARIES.get(name, (text_format.string, None))


def _uuid_of_text(value: str) -> bytes:
    return bytes.fromhex(value.replace("-", ""))


_STRINGS: dict[str, tuple[Write, Bulk | None]] = {"uuid": (_uuid_of_text, None)}
_BINARIES: dict[str, tuple[Write, Bulk | None]] = {
    "bool": (binary_format.boolean, bulk_binary.boolean),
    "bytea": (binary_format.raw, bulk_text.string),
    "int2": (binary_format.packed(">h"), bulk_binary.number(">i2")),
    "int4": (binary_format.packed(">i"), bulk_binary.number(">i4")),
    "int8": (binary_format.packed(">q"), bulk_binary.number(">i8")),
    "float4": (binary_format.packed(">f"), bulk_binary.number(">f4")),
    "float8": (binary_format.packed(">d"), bulk_binary.number(">f8")),
    "numeric": (binary_format.numeric, bulk_binary.numeric),
    "date": (binary_format.date, bulk_binary.date),
    "time": (binary_format.packed(">q"), bulk_binary.time),
    "timestamp": (binary_format.timestamp, bulk_binary.timestamp),
    "timestamptz": (binary_format.timestamp, bulk_binary.timestamp),
    "interval": (binary_format.interval, None),
}
