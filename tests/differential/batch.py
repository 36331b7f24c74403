"""Record batches for the script, right ones and wrong ones."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import cramjam
import crc32c

BASE_TIME_MS = 1_700_000_000_000  # far in the past, so it is never the time of a run
CODEC_BITS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def _lz4(data: bytes) -> bytes:
    """Blocks that stand alone: the Java library refuses others."""
    packer = cramjam.lz4.Compressor(block_linked=False)
    packer.compress(data)
    return bytes(packer.finish())


COMPRESS: dict[str, Callable[[bytes], Any]] = {
    "none": bytes,
    "gzip": cramjam.gzip.compress,
    "snappy": cramjam.snappy.compress_raw,
    "lz4": _lz4,
    "zstd": cramjam.zstd.compress,
}


@dataclass(frozen=True)
class Record:
    """One record; the offset delta is its place unless given."""

    value: bytes | None = b"value"
    key: bytes | None = b"key"
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_delta: int | None = None
    offset_delta: int | None = None


@dataclass(frozen=True)
class Batch:
    """A batch of format 2; every field that a producer could get wrong can be set."""

    records: Sequence[Record] = field(default_factory=lambda: [Record()])
    codec: str = "none"
    base_offset: int = 0
    base_timestamp_ms: int = BASE_TIME_MS
    max_timestamp_ms: int | None = None
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    attributes: int = 0
    magic: int = 2
    count: int | None = None
    last_offset_delta: int | None = None
    length: int | None = None
    crc: int | None = None
    leader_epoch: int = -1

    def to_bytes(self) -> bytes:
        """The batch as it goes over the wire."""
        body = b"".join(_record(index, record) for index, record in enumerate(self.records))
        packed = bytes(COMPRESS[self.codec](body))
        deltas = [_delta(index, record) for index, record in enumerate(self.records)]
        max_ms = self.base_timestamp_ms + max(deltas, default=0) if self.max_timestamp_ms is None else self.max_timestamp_ms
        after_crc = struct.pack(
            ">hiqqqhii",
            self.attributes | CODEC_BITS[self.codec],
            len(self.records) - 1 if self.last_offset_delta is None else self.last_offset_delta,
            self.base_timestamp_ms,
            max_ms,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            len(self.records) if self.count is None else self.count,
        )  # fmt: skip
        after_crc += packed
        crc = crc32c.crc32c(after_crc) if self.crc is None else self.crc
        length = len(after_crc) + 9 if self.length is None else self.length
        return struct.pack(">qiibI", self.base_offset, length, self.leader_epoch, self.magic, crc) + after_crc


def values(*items: str, key: bytes | None = b"key") -> list[Record]:
    """Records with these values."""
    return [Record(value=item.encode(), key=key) for item in items]


def _delta(index: int, record: Record) -> int:
    return index if record.timestamp_delta is None else record.timestamp_delta


def _record(index: int, record: Record) -> bytes:
    offset_delta = index if record.offset_delta is None else record.offset_delta
    body = b"\0" + zigzag(_delta(index, record)) + zigzag(offset_delta) + _bytes(record.key) + _bytes(record.value)
    body += zigzag(len(record.headers))
    for name, value in record.headers:
        body += _bytes(name.encode()) + _bytes(value)
    return zigzag(len(body)) + body


def _bytes(data: bytes | None) -> bytes:
    return zigzag(-1) if data is None else zigzag(len(data)) + data


def zigzag(value: int) -> bytes:
    """A signed varint."""
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def old_message_set(value: bytes, *, magic: int) -> bytes:
    """A message of format 0 or 1, which brokers of today refuse."""
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", BASE_TIME_MS) if magic else b"")
    body += struct.pack(">i", -1) + struct.pack(">i", len(value)) + value
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(message)) + message
