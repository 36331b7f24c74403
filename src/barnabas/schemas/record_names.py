"""The names of a schema, for the strategies that build a subject from the name of the record. No I/O.

| type | names |
|---|---|
| Avro | the full name of the record, enum or fixed; for another type its name, such as `string` |
| JSON Schema | the title |
| Protobuf | the full name of each message of the file: a record may contain any of them |
"""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error
from collections.abc import Iterator
from typing import Any

from barnabas.protocol.codec import read_varint

MAX_DEPTH = 32  # levels of nested messages; the same limit as in protoc
PACKAGE, MESSAGE_TYPE = 2, 4  # field numbers of FileDescriptorProto
NAME, NESTED_TYPE = 1, 3  # field numbers of DescriptorProto
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types


class NoName(ValueError):
    """A schema without a name of a record."""


def record_names(schema_type: str, text: str) -> list[str]:
    """The names of a schema; raises NoName.

    Args:
        schema_type: AVRO, JSON or PROTOBUF.
        text: the schema; for Protobuf, its descriptor in base64 (`format=serialized`).
    """
    try:
        if schema_type == "PROTOBUF":
            return _messages_of_file(b64decode(text, validate=True))
        schema = json.loads(text)
    except (ValueError, Error, IndexError, RecursionError):
        raise NoName("the schema cannot be read") from None
    name = schema.get("title") if schema_type == "JSON" and isinstance(schema, dict) else _avro_name(schema)
    if not isinstance(name, str) or not name:
        raise NoName("the schema has no name")
    return [name]


def _avro_name(schema: Any) -> object:
    if not isinstance(schema, dict):
        return schema  # a string is the name of a primitive type; a list is a union, which has no name
    name, namespace = schema.get("name"), schema.get("namespace")
    if not isinstance(name, str):
        return schema.get("type")
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _messages_of_file(data: bytes) -> list[str]:
    package, messages = "", []
    for number, content in _fields(data):
        if number == PACKAGE:
            package = content.decode()
        elif number == MESSAGE_TYPE:
            messages.append(content)
    return [name for message in messages for name in _messages(message, package, MAX_DEPTH)]


def _messages(data: bytes, scope: str, depth: int) -> Iterator[str]:
    fields = list(_fields(data))
    name = next((content.decode() for number, content in fields if number == NAME), "")
    whole = f"{scope}.{name}" if scope else name
    yield whole
    for number, content in fields:
        if number == NESTED_TYPE and depth:
            yield from _messages(content, whole, depth - 1)


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The number and the content of each field of a message that contains bytes."""
    data, position = memoryview(message), 0
    while position < len(data):
        tag, position = read_varint(data, position)
        kind = tag & 7
        if kind == BYTES:
            size, position = read_varint(data, position)
            if position + size > len(data):
                raise ValueError
            yield tag >> 3, message[position : position + size]
            position += size
        elif kind == VARINT:
            _, position = read_varint(data, position)
        elif kind in (FIXED64, FIXED32):
            position += 8 if kind == FIXED64 else 4
        else:
            raise ValueError
