"""Finds the schema ids in the records of a batch, in Confluent's wire format.

A key or a value begins with byte 0 and an id of 4 bytes. Serializers may instead put the id into a header of the record
(`__key_schema_id`, `__value_schema_id`): byte 1 and a GUID of 16 bytes, or byte 0 and the id. The indexes of a Protobuf message may
follow the GUID.

An id stays the bytes that name it (`SchemaId`), with byte 0 or 1. So a set of ids can be compared with the set of known ids, without an
object for each record.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import NamedTuple

from barnabas.protocol.records.batch_header import Buffer
from barnabas.protocol.records.request_scan import NotSane, read_short
from barnabas.protocol.records.scan import compiled

SchemaId = bytes  # of 5 or 17 bytes; NO_SCHEMA_ID if a record names none
NO_SCHEMA_ID = b""
ID_BYTES, GUID_BYTES = 5, 17
KEY_HEADER, VALUE_HEADER = b"__key_schema_id", b"__value_schema_id"
ONLY_NULL = frozenset({None})
NULL = 1  # a length of -1 as a varint


class SchemaIds(NamedTuple):
    """The schema ids of each record, in their order; None for a null key or value. A list that was not requested is empty."""

    of_keys: list[SchemaId | None]
    of_values: list[SchemaId | None]


def read_known(data: Buffer, count: int, keys: Set[SchemaId] | None, values: Set[SchemaId] | None) -> bool:
    """Whether `count` records fill `data`, and these sets contain the ids of their keys and values; null keys and values need no id.

    Also False for rare records: `schema_ids` says more about them. If a set is None, these ids are not checked.
    """
    ids = schema_ids(bytes(data), count, keys=keys is not None, values=values is not None)
    if ids is None:
        return False
    return (keys is None or set(ids.of_keys) - ONLY_NULL <= keys) and (values is None or set(ids.of_values) - ONLY_NULL <= values)


name_known_schemas: Callable[[Buffer, int, Set[SchemaId] | None, Set[SchemaId] | None], bool]
name_known_schemas = read_known if compiled is None else compiled.name_known_schemas


def schema_ids(data: bytes, count: int, *, keys: bool, values: bool) -> SchemaIds | None:
    """The schema ids of the `count` records that fill `data`; None if the records are not well-formed.

    Accepts some bytes that the log refuses: the log checks each batch itself.
    """
    of_keys: list[SchemaId | None] = []
    of_values: list[SchemaId | None] = []
    position = 0
    try:
        for _ in range(count):
            size, position = _number(data, position)
            end = position + (size >> 1)
            position += 1  # skip the attributes
            while data[position] & 0x80:  # skip the timestamp delta
                position += 1
            position += 1
            while data[position] & 0x80:  # skip the offset delta
                position += 1
            key_size, key_at = _number(data, position + 1)
            key_end = key_at if key_size == NULL else key_at + (key_size >> 1)
            value_size, value_at = _number(data, key_end)
            position = value_at if value_size == NULL else value_at + (value_size >> 1)
            if end > len(data) or position >= end:
                return None
            key_id = value_id = None
            if data[position]:
                key_id, value_id = _in_headers(data, position, end)
            if keys:
                of_keys.append(None if key_size == NULL else _id_at(data, key_at, key_end) if key_id is None else key_id)
            if values:
                of_values.append(
                    None if value_size == NULL else _id_at(data, value_at, position) if value_id is None else value_id
                )
            position = end
    except (IndexError, NotSane):
        return None
    return SchemaIds(of_keys, of_values) if position == len(data) else None


def _number(data: bytes, position: int) -> tuple[int, int]:
    """A varint without zigzag decoding, and the position after it; it is even, or NULL."""
    value = data[position]
    if value & 0x80:
        value, position = read_short(data, position, longest=5)
        position -= 1
    if value & 1 and value != NULL:
        raise NotSane
    return value, position + 1


def _id_at(data: bytes, start: int, end: int) -> SchemaId:
    return data[start : start + ID_BYTES] if end - start >= ID_BYTES and not data[start] else NO_SCHEMA_ID


def _in_headers(data: bytes, position: int, end: int) -> tuple[SchemaId | None, SchemaId | None]:
    """The ids in the headers of a record, for its key and its value; the first header of a name counts, as in deserializers."""
    found: dict[bytes, SchemaId] = {}
    count, position = _number(data, position)
    for _ in range(count >> 1):
        size, position = _number(data, position)
        name = data[position : position + (size >> 1)]
        size, position = _number(data, position + (size >> 1))
        if size != NULL:
            if name in (KEY_HEADER, VALUE_HEADER):
                found.setdefault(name, _named(data[position : position + (size >> 1)]))
            position += size >> 1
        if position > end:
            raise NotSane
    return found.get(KEY_HEADER), found.get(VALUE_HEADER)


def _named(text: bytes) -> SchemaId:
    """The id in the value of a header; NO_SCHEMA_ID if it has none."""
    if len(text) >= GUID_BYTES and text[0] == 1:
        return text[:GUID_BYTES]
    return text[:ID_BYTES] if len(text) >= ID_BYTES and not text[0] else NO_SCHEMA_ID
