"""The headers of record batches (v2): enough to iterate over the batches of a buffer without decoding the records."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from barnabas.protocol.base_message import Buffer

HEADER_BYTES = 61
_LENGTHS = struct.Struct(">qi")  # base offset, bytes after these twelve bytes
_LAST_OFFSET_DELTA = struct.Struct(">i")


def whole_batches(records: Buffer) -> Iterator[tuple[int, int, int]]:
    """(position, size, base offset) of each complete batch."""
    position, end = 0, len(records)
    while end - position >= 12:
        base_offset, length = _LENGTHS.unpack_from(records, position)
        size = length + 12
        if length < HEADER_BYTES - 12 or size > end - position:
            return
        yield position, size, base_offset
        position += size


def next_offset(records: Buffer, default: int) -> int:
    """The offset after the last whole batch; `default` if there is none."""
    result = default
    for position, _, base_offset in whole_batches(records):
        result = base_offset + _LAST_OFFSET_DELTA.unpack_from(records, position + 23)[0] + 1
    return result
