"""The four codecs of record batches, decompressed in bulk by cramjam into one buffer that is used again and again.

Rules
  1. A batch unfolds into room of bounded size: one that wants more than the limit is refused, whatever its header says.
  2. Batches that are decoded together lie behind each other in the room, so that nothing is joined or copied.

Ugly: snappy comes in two shapes, bare from librdkafka and in the frames of the Java library from everyone else. The Java frame is
sixteen bytes of magic and versions, then blocks, each behind a length of four bytes. And only snappy says how large its result will be:
where the others do not fit, they are decompressed again with more room.
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
    """The result does not fit into the room that is left."""


class OutputBuffer:
    """Where the records of compressed batches unfold.

    Args:
        room_bytes: memory taken at first; it grows for a batch that needs more, up to `limit`.
        limit: bytes that one batch may unfold to.
    """

    def __init__(self, room_bytes: int, limit: int = MAX_DECOMPRESSED_BATCH_BYTES) -> None:
        self.used = 0
        self.limit = limit
        self._bytes: Bytes = np.empty(min(room_bytes, limit), np.uint8)

    @property
    def data(self) -> Bytes:
        """What was unfolded since the last `clear`; valid until the next one."""
        return self._bytes[: self.used]

    def clear(self) -> None:
        self.used = 0

    def append(self, codec: int, data: Buffer) -> bool:
        """Unfold `data` behind what is there; False, with nothing done, where it does not fit behind others.

        Raises:
            ValueError: `data` is not what `codec` makes, or unfolds to more than the limit.
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
                    raise ValueError(f"it unfolds to more than {self.limit} bytes") from None
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
            raise ValueError(f"snappy: a block of {size} bytes where {len(view) - position} are left")
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
