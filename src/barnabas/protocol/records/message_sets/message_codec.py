"""Reads the messages of a set one by one, and writes messages.

Attributes: bits 0-2 codec, bit 3 timestamp type (magic 1). The CRC is CRC-32, as in gzip, not CRC-32C.
"""

from __future__ import annotations

import struct
from typing import NamedTuple
from zlib import crc32

from barnabas.error_codes import ErrorCode
from barnabas.errors import KafkaError
from barnabas.protocol.records.batch_header import (
    COMPRESSION_MASK,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_BIT,
    MAX_LEGACY_MAGIC,
    NO_TIMESTAMP,
    Buffer,
    framed_size,
)
from barnabas.protocol.records.record import invalid

CRC_POSITION = 12
CRC_START = 16  # the CRC covers the message from here to its end
_ATTRIBUTES = 17
_HEAD = struct.Struct(">qiIbb")  # offset, size, CRC, magic, attributes
_HEAD_SIZE = _HEAD.size
_LENGTH, _TIME = struct.Struct(">i"), struct.Struct(">q")
# The fields between the CRC and the key length, for magic 0 and 1.
_COVERED_0, _COVERED_1 = struct.Struct(">bb"), struct.Struct(">bbq")
_PLACE = struct.Struct(">qiI")
NULL = _LENGTH.pack(-1)
MAX_INT32 = 2**31 - 1


class Message(NamedTuple):
    """One message with a correct CRC. `timestamp` is -1 in magic 0; the module describes `attributes`."""

    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None

    @property
    def compression(self) -> int:
        return self.attributes & COMPRESSION_MASK

    @property
    def has_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME_BIT)


def read_messages(data: Buffer, most: int, most_bytes: int = MAX_INT32) -> list[Message]:
    """The whole messages at the beginning of `data`; a cut message after them is ignored.

    Args:
        most: the maximum number of messages.
        most_bytes: the maximum size of a message in bytes.

    Raises:
        KafkaError: CORRUPT_MESSAGE for bytes that are no messages, INVALID_RECORD for batches and for lengths beyond a message's end,
            MESSAGE_TOO_LARGE for a message that is too large, or for too many messages.
    """
    view = memoryview(data)
    found: list[Message] = []
    position = 0
    while (size := framed_size(view, position)) is not None:
        if len(found) == most:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"The message set has more than {most} messages.")
        if size > most_bytes:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"A message has {size} bytes, and may have {most_bytes}.")
        found.append(_read_message(view, position, position + size))
        position += size
    return found


def _read_message(view: memoryview, position: int, end: int) -> Message:
    offset, _, crc, magic, attributes = _HEAD.unpack_from(view, position)
    if magic > MAX_LEGACY_MAGIC:
        raise invalid(f"A message set has a batch of magic {magic}.")
    if crc32(view[position + CRC_START : end]) != crc:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "Record is corrupt (stored crc does not match).")
    at, timestamp = position + _HEAD_SIZE, NO_TIMESTAMP
    try:
        if magic:
            (timestamp,) = _TIME.unpack_from(view, at)
            at += _TIME.size
        key, at = _read_bytes(view, at, end)
        value, at = _read_bytes(view, at, end)
    except struct.error:
        raise invalid("Found invalid message structure.") from None
    return Message(offset, magic, attributes, timestamp, key, value)


def _read_bytes(view: memoryview, position: int, end: int) -> tuple[bytes | None, int]:
    (size,) = _LENGTH.unpack_from(view, position)
    start = position + _LENGTH.size
    if size < 0:
        return None, start
    if start + size > end:
        raise invalid("Found invalid message structure.")
    return bytes(view[start : start + size]), start + size


def write_message(
    offset: int, magic: int, attributes: int, timestamp: int, key: Buffer | None, value: Buffer | None, out: bytearray
) -> None:
    """Append a message to `out`; magic 0 has no field for `timestamp`."""
    covered = _COVERED_1.pack(magic, attributes, timestamp) if magic else _COVERED_0.pack(magic, attributes)
    parts = (
        covered,
        NULL if key is None else _LENGTH.pack(len(key)),
        b"" if key is None else key,
        NULL if value is None else _LENGTH.pack(len(value)),
        b"" if value is None else value,
    )
    body = b"".join(parts)
    out += _PLACE.pack(offset, CRC_START - LENGTH_OVERHEAD + len(body), crc32(body))
    out += body


def is_compressed(data: Buffer) -> bool:
    """Whether a set begins with a wrapper."""
    return len(data) > _ATTRIBUTES and bool(data[_ATTRIBUTES] & COMPRESSION_MASK)
