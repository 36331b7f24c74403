"""Record batches made by another implementation (aiokafka's builder), for tests of the decoder."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from crc32c import crc32c

Header = tuple[str, bytes | None]
NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)


def batch(
    base_offset: int,
    records: Sequence[tuple[bytes | None, bytes | None]],
    *,
    codec: int = NONE,
    headers: Sequence[Sequence[Header]] | None = None,
    first_timestamp: int = 1_000,
    attributes: int = 0,
    producer_id: int = -1,
    max_timestamp: int | None = None,
) -> bytes:
    """A batch of records at base_offset, base_offset + 1, ...; timestamps grow by one millisecond. `attributes` are added."""
    builder = DefaultRecordBatchBuilder(2, codec, 0, producer_id, 0, 0, 1 << 30)
    for i, (key, value) in enumerate(records):
        assert builder.append(i, first_timestamp + i, key, value, list(headers[i]) if headers else [])
    data = bytearray(builder.build())
    struct.pack_into(">q", data, 0, base_offset)
    data[22] |= attributes
    if max_timestamp is not None:
        struct.pack_into(">q", data, 35, max_timestamp)
    return seal(data)


def seal(data: bytearray) -> bytes:
    """The same bytes with a checksum that fits them."""
    struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))
    return bytes(data)


def marker(base_offset: int, producer_id: int, *, commit: bool) -> bytes:
    """The control batch that ends a transaction."""
    key, value = struct.pack(">hh", 0, int(commit)), struct.pack(">hi", 0, 0)
    return batch(base_offset, [(key, value)], attributes=0x30, producer_id=producer_id)
