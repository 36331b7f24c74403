"""The four codecs of record batches, decompressed in bulk by cramjam into one reused buffer.

Rules
  1. A batch is decompressed into a buffer of bounded size: a batch above the limit is refused, whatever its header says.
  2. Batches that are decoded together are adjacent in the buffer, so that nothing is joined or copied.

Ugly: snappy has two formats: raw from librdkafka, framed by the Java library from all other clients. The Java frame has sixteen
bytes of magic and versions, then blocks, each after its length of four bytes. Only snappy gives the size of its result:
other codecs that do not fit are decompressed again into a larger buffer.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import cramjam
import numpy as np
import numpy.typing as npt

from barnabas.limits import MAX_DECOMPRESSED_BATCH_BYTES
from barnabas.protocol.base_message import Buffer
from barnabas.protocol.records.compression import BUFFER_TOO_SMALL, SNAPPY_HEADER, SNAPPY_MAGIC, Compression

Bytes = npt.NDArray[np.uint8]

GROWTH = 4
_BLOCK = struct.Struct(">i")


class _Full(Exception):
    """The result does not fit into the rest of the buffer."""


class OutputBuffer:
    """The buffer for the records of compressed batches.

    Args:
        room_bytes: initial size; the buffer grows for a larger batch, up to `limit`.
        limit: bytes of one decompressed batch.
    """

    def __init__(self, room_bytes: int, limit: int = MAX_DECOMPRESSED_BATCH_BYTES) -> None:
        self.used = 0
        self.limit = limit
        self._bytes: Bytes = np.empty(min(room_bytes, limit), np.uint8)

    @property
    def data(self) -> Bytes:
        """The bytes decompressed since the last `clear`; valid until the next one."""
        return self._bytes[: self.used]

    def clear(self) -> None:
        self.used = 0

    def append(self, codec: int, data: Buffer) -> bool:
        """Decompress `data` after the present bytes; False, without a change, if it does not fit after them.

        Raises:
            ValueError: `data` is not valid for `codec`, or is above the limit after decompression.
        """
        decompress = _CODECS.get(codec)
        if decompress is None:
            raise ValueError(f"codec {codec} is unknown")
        while True:
            try:
                self.used += decompress(data, self._bytes[self.used :])
                return True
            except _Full:
                if self.used:
                    return False
                if len(self._bytes) >= self.limit:
                    raise ValueError(f"it has more than {self.limit} bytes after decompression") from None
                self._bytes = np.empty(min(len(self._bytes) * GROWTH, self.limit), np.uint8)
            except (cramjam.DecompressionError, struct.error) as error:
                raise ValueError(f"{Compression(codec).name.lower()}: {error}") from error


def _growing(decompress_into: Callable[[Any, Any], int]) -> Callable[[Buffer, Bytes], int]:
    def decompress(data: Buffer, room: Bytes) -> int:
        try:
            return decompress_into(data, room)
        except cramjam.DecompressionError as error:
            if BUFFER_TOO_SMALL in str(error):
                raise _Full from None
            raise

    return decompress


def _snappy(data: Buffer, room: Bytes) -> int:
    view = memoryview(data)
    if view[: len(SNAPPY_MAGIC)] != SNAPPY_MAGIC:
        return _snappy_block(view, room)
    position, used = len(SNAPPY_HEADER), 0
    while position < len(view):
        (size,) = _BLOCK.unpack_from(view, position)
        position += _BLOCK.size
        if not 0 <= size <= len(view) - position:
            raise ValueError(f"snappy: a block of {size} bytes, but only {len(view) - position} are left")
        used += _snappy_block(view[position : position + size], room[used:])
        position += size
    return used


def _snappy_block(block: memoryview, room: Bytes) -> int:
    if cramjam.snappy.decompress_raw_len(block) > len(room):
        raise _Full
    return cramjam.snappy.decompress_raw_into(block, room)  # type: ignore[arg-type]  # arrays are buffers, which the stubs do not know


_CODECS: dict[int, Callable[[Buffer, Bytes], int]] = {
    Compression.GZIP: _growing(cramjam.gzip.decompress_into),
    Compression.SNAPPY: _snappy,
    Compression.LZ4: _growing(cramjam.lz4.decompress_into),
    Compression.ZSTD: _growing(cramjam.zstd.decompress_into),
}
