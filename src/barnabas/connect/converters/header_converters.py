"""Converters of headers. The headers of records are bytes within tasks: those of the topic for a source, texts for a sink.

`header.converter` writes what transforms make (`InsertHeader`, `HeaderFrom`), and the headers of a source that are no bytes. Bytes of a
source are written as they are. For a sink, it says how the bytes of the topic become texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.converters.connect_texts import texts_of
from barnabas.connect.converters.interface import Converter
from barnabas.connect.converters.json_converter import JsonConverter
from barnabas.connect.converters.json_schema import schema_of
from barnabas.connect.converters.json_text import text_of
from barnabas.connect.converters.plain import ByteArrayConverter, StringConverter
from barnabas.connect.errors import ConnectError

if TYPE_CHECKING:
    from barnabas.connect.converters.interface import Array, Metadata

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class HeaderConverter(Protocol):
    """Converts the values of headers."""

    def encode(self, column: Array, topic: str) -> Array:
        """The bytes of values. Raises ConnectError."""

    def decode(self, payloads: Array) -> Any:
        """See `Converter.decode`."""


class SimpleHeaderConverter(ByteArrayConverter):
    """`org.apache.kafka.connect.storage.SimpleHeaderConverter`: the texts of values. A text that is read stays as it is."""

    def encode(self, column: Array, topic: str, metadata: Metadata = None) -> Array:
        made: Array = pa.array(texts_of(column), pa.string()).cast(pa.binary())
        return made


class JsonHeaderConverter(JsonConverter):
    """`JsonConverter` for headers: a null is JSON too."""

    def encode(self, column: Array, topic: str, metadata: Metadata = None) -> Array:
        if not self.has_schemas:
            return super().encode(column, topic, metadata).fill_null(b"null")
        envelope = {"schema": schema_of(column.type, optional=True), "payload": None}
        return super().encode(column, topic, metadata).fill_null(msgspec.json.encode(envelope))


SIMPLE = SimpleHeaderConverter({}, is_key=False)


def encoded(records: pa.Table, headers: HeaderConverter) -> pa.Table:
    """The records of a source, whose headers are bytes. Raises ConnectError."""
    if "headers" not in records.column_names:
        return records
    at = records.column_names.index("headers")
    column: Any = records.column(at).combine_chunks()
    if pa.types.is_null(column.type):
        return records.drop_columns(["headers"])
    if pa.types.is_map(column.type):
        column = column.cast(pa.list_(pa.struct([("key", column.type.key_type), ("value", column.type.item_type)])))
    names, values = _items(column)
    if pa.types.is_binary(values.type):
        return records if column.type == HEADERS else records.set_column(at, "headers", _lists(column, names, values))
    return records.set_column(at, "headers", _lists(column, names, headers.encode(values, "")))


def decoded(records: pa.Table, headers: Converter) -> tuple[pa.Table, dict[int, str]]:
    """The records of a sink with texts as headers, and why some of them cannot be converted, by their number."""
    if isinstance(headers, (ByteArrayConverter, StringConverter)) or "headers" not in records.column_names:
        return records, {}
    at = records.column_names.index("headers")
    column: Any = records.column(at).combine_chunks()
    if not pc.sum(pc.list_value_length(column)).as_py():
        return records, {}
    names, values = _items(column)
    found = headers.decode(values)
    texts = pa.array([None if each is None else text_of(each) for each in found.column.to_pylist()], pa.binary())
    rows = pc.list_parent_indices(column).to_pylist() if found.bad else []
    bad = {rows[number]: f"{names[number].as_py()}: {reason}" for number, reason in found.bad.items()}
    return records.set_column(at, "headers", _lists(column, names, texts)), bad


def _items(column: Any) -> tuple[Any, Any]:
    """Names and values of all headers of a column."""
    kind = column.type
    if not (pa.types.is_list(kind) and pa.types.is_struct(kind.value_type) and kind.value_type.num_fields == 2):
        raise ConnectError(f"headers are a list of structs with key and value, or a map; these are {kind}")
    items = column.flatten()
    return items.field(0), items.field(1)


def _lists(like: Any, names: Any, values: Any) -> Any:
    """Headers in the lists that another column has."""
    lengths = [0 if each is None else each for each in pc.list_value_length(like).to_pylist()]
    ends = [0]
    for each in lengths:
        ends.append(ends[-1] + each)
    offsets = pa.array(ends, pa.int32())
    items = pa.StructArray.from_arrays([names.cast(pa.string()), values.cast(pa.binary())], fields=list(HEADERS.value_type))
    return pa.ListArray.from_arrays(offsets, items, mask=like.is_null() if like.null_count else None).cast(HEADERS)
