"""The bytes that name the schema of a record, in the form of Confluent's serialisers.

In the payload: the byte 0, the id as four bytes (big-endian), then the data. In headers: `__value_schema_id` or `__key_schema_id` holds
the byte 1 and the guid as 16 bytes, and the payload is the data alone. Both forms are possible in both places. After the id,
Protobuf has the path to its message: the number of steps and each step as zigzag varints, or one byte 0 for the first message.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from barnabas.protocol.records.varint import MalformedVarint, read_varlong, varint
from barnabas.schemas.errors import CannotDecode, NotFramed

KEY_HEADER, VALUE_HEADER = "__key_schema_id", "__value_schema_id"
BY_ID, BY_GUID = 0, 1
_ID = struct.Struct(">BI")
_ID_BYTES, _GUID_BYTES = 5, 17
_FIRST_MESSAGE = (0,)
_MAX_STEPS = 100

Headers = Iterable[tuple[str, Any]] | Mapping[str, Any] | None  # header values are bytes or None


class Framed(NamedTuple):
    """A payload and the name of its schema.

    Args:
        schema: the id, or the guid as text.
        path: the bytes that, for Protobuf, begin with the path of the message.
        body: the data. None if the id is in the payload: then the data is in `path`, after the path itself.
    """

    schema: int | str
    path: bytes
    body: bytes | None

    def data(self) -> bytes:
        """The data of formats without a path."""
        return self.path if self.body is None else self.body

    def message(self) -> tuple[tuple[int, ...], bytes]:
        """The path of a Protobuf message, and the data. Raises CannotDecode."""
        path, size = read_path(self.path)
        return path, self.path[size:] if self.body is None else self.body


def id_prefix(schema_id: int, path: Sequence[int] | None = None) -> bytes:
    """The bytes before the data; `path` for Protobuf."""
    return _ID.pack(BY_ID, schema_id) + (b"" if path is None else write_path(path))


def guid_header(guid: str, path: Sequence[int] | None = None) -> bytes:
    """The value of the header; `path` for Protobuf."""
    return bytes([BY_GUID]) + UUID(guid).bytes + (b"" if path is None else write_path(path))


def split(payload: bytes, headers: Headers = None, *, is_key: bool = False) -> Framed:
    """The schema's name and the data. A header overrides the payload. Raises NotFramed."""
    name = KEY_HEADER if is_key else VALUE_HEADER
    pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
    for key, value in pairs:
        if key == name and value is not None:
            named = _read_name(value)
            if named is None:
                raise CannotDecode(f"the header {name} holds no id of a schema")
            return Framed(named[0], value[named[1] :], payload)
    named = _read_name(payload)
    if named is None:
        raise NotFramed("it carries no id of a schema")
    return Framed(named[0], payload[named[1] :], None)


def _read_name(data: bytes) -> tuple[int | str, int] | None:
    """The id or guid, and its size in bytes; ids begin at 1."""
    if len(data) >= _ID_BYTES and data[0] == BY_ID:
        found: int = _ID.unpack_from(data)[1]
        return (found, _ID_BYTES) if found else None
    if len(data) >= _GUID_BYTES and data[0] == BY_GUID:
        return str(UUID(bytes=data[1:_GUID_BYTES])), _GUID_BYTES
    return None


def write_path(path: Sequence[int]) -> bytes:
    if tuple(path) == _FIRST_MESSAGE:
        return b"\0"
    return b"".join(varint(number) for number in (len(path), *path))


def read_path(data: bytes) -> tuple[tuple[int, ...], int]:
    """The path, and its size in bytes. Raises CannotDecode."""
    try:
        count, at = read_varlong(data, 0)
        if count == 0:
            return _FIRST_MESSAGE, at
        if not 0 < count <= _MAX_STEPS:
            raise CannotDecode(f"the path to a Protobuf message has {count} steps")
        path = []
        for _ in range(count):
            step, at = read_varlong(data, at)
            path.append(step)
    except MalformedVarint as error:
        raise CannotDecode(f"it ends within the path to a Protobuf message: {error}") from None
    return tuple(path), at
