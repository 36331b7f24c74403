"""What the records of all internal topics have in common: a 16-bit number before each key and each value.

Before a key it says what the record is about, before a value in which version the message behind it is.
"""

from __future__ import annotations

from struct import Struct

from barnabas.errors import MalformedMessage
from barnabas.protocol.base_message import Buffer

Record = tuple[bytes, bytes | None]  # key and value; a None value is a tombstone

_NUMBER = Struct(">h")
NUMBER_BYTES = _NUMBER.size


def begin(number: int) -> bytearray:
    """A key or value so far; the message is to be written behind it."""
    return bytearray(_NUMBER.pack(number))


def leading_number(data: Buffer, name: str) -> int:
    """Raises MalformedMessage, which names it so, where there is none."""
    if len(data) < NUMBER_BYTES:
        raise MalformedMessage(name, -1, f"{len(data)} bytes where a 16-bit number should stand")
    number: int = _NUMBER.unpack_from(data)[0]
    return number


def version_of(data: Buffer, name: str, last: int) -> int:
    """The version of a value; raises MalformedMessage where it is none of 0 to `last`."""
    version = leading_number(data, name)
    if not 0 <= version <= last:
        raise MalformedMessage(name, version, "an unknown version")
    return version
