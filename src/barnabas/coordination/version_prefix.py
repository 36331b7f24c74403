"""The common prefix of records in all internal topics: a 16-bit number before each key and each value.

Before a key it is the type of the record, before a value the version of the message after it.
"""

from __future__ import annotations

from struct import Struct

from barnabas.errors import MalformedMessage
from barnabas.protocol.base_message import Buffer

Record = tuple[bytes, bytes | None]  # key and value; a None value is a tombstone

_NUMBER = Struct(">h")
NUMBER_BYTES = _NUMBER.size


def begin(number: int) -> bytearray:
    """The beginning of a key or value; the caller appends the message."""
    return bytearray(_NUMBER.pack(number))


def leading_number(data: Buffer, name: str) -> int:
    """The number; raises MalformedMessage with `name` if there is none."""
    if len(data) < NUMBER_BYTES:
        raise MalformedMessage(name, -1, f"{len(data)} bytes instead of a 16-bit number")
    number: int = _NUMBER.unpack_from(data)[0]
    return number


def version_of(data: Buffer, name: str, last: int) -> int:
    """The version of a value; raises MalformedMessage if it is not in 0 to `last`."""
    version = leading_number(data, name)
    if not 0 <= version <= last:
        raise MalformedMessage(name, version, "an unknown version")
    return version
