"""Message sets for tests, made and taken apart by the struct module, gzip and cramjam; only LZ4's hash of headers is the product's."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import cramjam

from barnabas.protocol.records.message_sets.lz4_frames import short_xxh32

NOW_FROM_MS = 1_750_000_000_000  # timestamps of brokers are later, those of the script earlier
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
LOG_APPEND_TIME = 8
XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
Pair = tuple[bytes | None, bytes | None]


def message(
    magic: int,
    key: bytes | None,
    value: bytes | None,
    *,
    offset: int = 0,
    time: int = -1,
    attributes: int = 0,
    crc: int | None = None,
) -> bytes:
    body = struct.pack(">bb", magic, attributes) + (struct.pack(">q", time) if magic else b"")
    for field in (key, value):
        body += struct.pack(">i", -1) if field is None else struct.pack(">i", len(field)) + field
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body) if crc is None else crc) + body


def message_set(magic: int, pairs: Sequence[Pair], *, time: int = -1, first: int = 0, attributes: int = 0) -> bytes:
    return b"".join(
        message(magic, key, value, offset=first + index, time=time + index if time >= 0 else time, attributes=attributes)
        for index, (key, value) in enumerate(pairs)
    )


def squeeze(codec: int, data: bytes, magic: int) -> bytes:
    if codec == GZIP:
        return gzip.compress(data, mtime=0)
    if codec == SNAPPY:
        block = bytes(cramjam.snappy.compress_raw(data))
        return XERIAL + struct.pack(">i", len(block)) + block
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data))
    compressor = cramjam.lz4.Compressor(level=1, content_checksum=False, block_linked=False)
    compressor.compress(data)
    return checksummed(bytes(compressor.finish()), old=magic == 0)


def checksummed(frame: bytes, *, old: bool) -> bytes:
    """An LZ4 frame without content size, with the checksum of KIP-57's clients before or after it."""
    return frame[:6] + bytes([short_xxh32(frame[0 if old else 4 : 6]) >> 8 & 0xFF]) + frame[7:]


def wrapped(codec: int, magic: int, inner: bytes, *, offset: int = 0, time: int = -1, attributes: int = 0) -> bytes:
    return message(magic, None, squeeze(codec, inner, magic), offset=offset, time=time, attributes=codec | attributes)


def unsqueezed(codec: int, data: bytes, magic: int) -> bytes:
    if codec == GZIP:
        return gzip.decompress(data)
    if codec == SNAPPY:
        out, position = b"", len(XERIAL)
        assert data.startswith(XERIAL)
        while position < len(data):
            (size,) = struct.unpack_from(">i", data, position)
            out += bytes(cramjam.snappy.decompress_raw(data[position + 4 : position + 4 + size]))
            position += 4 + size
        return out
    assert codec == LZ4
    assert data == checksummed(data, old=magic == 0)
    assert not data[4] & 0x09, "neither content size nor dictionary, which old readers refuse"
    return bytes(cramjam.lz4.decompress(checksummed(data, old=False)))


def taken_apart(data: bytes) -> list[Any]:
    """The messages of a set, those in a wrapper behind its own fields; "cut" for one that is not whole."""
    found: list[Any] = []
    position = 0
    while position < len(data):
        if len(data) - position < 12:
            return [*found, "cut"]
        offset, size = struct.unpack_from(">qi", data, position)
        if position + 12 + size > len(data):
            return [*found, "cut"]
        found.append(_one(offset, data[position + 12 : position + 12 + size]))
        position += 12 + size
    return found


def _one(offset: int, body: bytes) -> list[Any]:
    crc, magic, attributes = struct.unpack_from(">Ibb", body)
    assert crc == zlib.crc32(body[4:])
    at, time = 6, None
    if magic:
        (time,) = struct.unpack_from(">q", body, at)
        at += 8
    fields: list[bytes | None] = []
    for _ in range(2):
        (size,) = struct.unpack_from(">i", body, at)
        fields.append(None if size < 0 else body[at + 4 : at + 4 + size])
        at += 4 + max(size, 0)
    assert at == len(body)
    shown = [offset, magic, attributes, "now" if time is not None and time > NOW_FROM_MS else time]
    codec = attributes & 7
    if codec:
        key, value = fields
        assert key is None
        assert value is not None
        return [*shown, taken_apart(unsqueezed(codec, value, magic))]
    return shown + [None if field is None else field.decode("latin-1") for field in fields]
