"""The four codecs of record batches, decompressed in bulk by cramjam.

Ugly: snappy comes in two shapes, bare from librdkafka and in the frames of the Java library from everyone else. The Java frame is
sixteen bytes of magic and versions, then blocks, each behind a length of four bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import cramjam

from barnabas.protocol.message import Buffer

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
NAMES = {NONE: "none", GZIP: "gzip", SNAPPY: "snappy", LZ4: "lz4", ZSTD: "zstd"}
_JAVA_SNAPPY_MAGIC = b"\x82SNAPPY\x00"
_BLOCK = struct.Struct(">i")


def decompress(codec: int, data: Buffer) -> Buffer:
    """The records of a batch; raises ValueError where `data` is not what `codec` makes."""
    if codec not in _CODECS:
        raise ValueError(f"codec {codec} is unknown")
    try:
        return memoryview(_CODECS[codec](data))
    except (cramjam.DecompressionError, struct.error) as error:
        raise ValueError(f"{NAMES[codec]}: {error}") from error


def _snappy(data: Buffer) -> Any:
    if bytes(data[:8]) != _JAVA_SNAPPY_MAGIC:
        return cramjam.snappy.decompress_raw(data)
    pieces, position = [], 16
    while position < len(data):
        (size,) = _BLOCK.unpack_from(data, position)
        position += 4
        if not 0 <= size <= len(data) - position:
            raise ValueError(f"snappy: a block of {size} bytes where {len(data) - position} are left")
        pieces.append(cramjam.snappy.decompress_raw(data[position : position + size]))
        position += size
    return b"".join(bytes(piece) for piece in pieces)


_CODECS: dict[int, Callable[[Buffer], Any]] = {  # to whatever has the buffer of the result
    GZIP: lambda data: cramjam.gzip.decompress(data),
    SNAPPY: _snappy,
    LZ4: lambda data: cramjam.lz4.decompress(data),
    ZSTD: lambda data: cramjam.zstd.decompress(data),
}
