"""The four codecs of record batches, as the Java client writes and reads them.

Owns the framing of each codec in a batch and the bound on the memory of decompression.

Rules
  1. Decompression writes into a buffer of bounded size: a batch above `limits.MAX_DECOMPRESSED_BATCH_BYTES` after decompression
     is refused with MESSAGE_TOO_LARGE, which makes a producer split its batch.
  2. Snappy is written in the framing of the Java library (a header, then blocks of 32 kB); plain snappy is read as well,
     because librdkafka writes it.
  3. LZ4 frames are written with independent blocks: Java's reader refuses linked ones.

Records that are only checked are decompressed into a reused buffer of the thread (`unfold`), because a new, cleared buffer
takes up to a quarter of the time of LZ4.

Ugly: the codecs do not give the size of the result, so the buffer starts with an estimate, and decompression repeats with a
larger one.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from enum import IntEnum

import cramjam

from barnabas import limits
from barnabas.error_codes import ErrorCode
from barnabas.errors import KafkaError
from barnabas.protocol.records.batch_header import Buffer

FIRST_GUESS = 8  # times the compressed size; JSON and logs compress to between a third and a tenth
SMALLEST_BUFFER = 16 * 1024
GROWTH = 4
SCRATCH_BYTES = 1024 * 1024
MOST_UNFOLDED = 32  # times the compressed size; `unfolded` refuses larger results
BUFFER_TOO_SMALL = "failed to write whole buffer"  # the error of the codecs if the result does not fit

SNAPPY_MAGIC = b"\x82SNAPPY\x00"
SNAPPY_HEADER = SNAPPY_MAGIC + struct.pack(">ii", 1, 1)  # version, lowest compatible version
SNAPPY_BLOCK = 32 * 1024
INT32 = struct.Struct(">i")

LZ4_FAST_LEVEL = 9  # Kafka's default level means the fast compressor, other levels the high one
LZ4_FAST = 1


class Compression(IntEnum):
    """Codecs by their number in the attributes of a batch."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


NAMES = {"uncompressed": Compression.NONE, "gzip": Compression.GZIP, "snappy": Compression.SNAPPY, "lz4": Compression.LZ4,
         "zstd": Compression.ZSTD}  # fmt: skip
_INTO: dict[int, Callable[..., int]] = {
    Compression.GZIP: cramjam.gzip.decompress_into,
    Compression.LZ4: cramjam.lz4.decompress_into,
    Compression.ZSTD: cramjam.zstd.decompress_into,
}


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """`data` compressed; `level` is a level of the codec, None stands for its default."""
    if codec == Compression.GZIP:
        return bytes(cramjam.gzip.compress(data, level=6 if level is None or level < 0 else level))
    if codec == Compression.SNAPPY:
        return _compress_snappy(data)
    if codec == Compression.LZ4:
        return _compress_lz4(data, level)
    if codec == Compression.ZSTD:
        return bytes(cramjam.zstd.compress(data, level=3 if level is None else level))
    return bytes(data)


def decompress(codec: int, data: Buffer, limit: int = limits.MAX_DECOMPRESSED_BATCH_BYTES) -> bytes | bytearray:
    """The decompressed bytes of `data`.

    Raises:
        KafkaError: MESSAGE_TOO_LARGE beyond `limit`, INVALID_RECORD if the bytes do not fit the codec,
            UNSUPPORTED_COMPRESSION_TYPE for an unknown codec.
    """
    into = _INTO.get(codec)
    if into is not None:
        return _decompress_growing(into, data, limit)
    if codec == Compression.SNAPPY:
        return _decompress_snappy(data, limit)
    if codec == Compression.NONE:
        return bytes(data)
    raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Unknown compression type id: {codec}")


class _Scratch(threading.local):
    """A buffer for decompressed bytes; one for each thread, because the codecs release the interpreter's lock."""

    _view: memoryview | None = None

    @property
    def view(self) -> memoryview:
        if self._view is None:  # on first use, because an idle broker does not need it
            self._view = memoryview(bytearray(SCRATCH_BYTES))
        return self._view


_scratch = _Scratch()


def unfold(codec: int, data: memoryview, limit: int = limits.MAX_DECOMPRESSED_BATCH_BYTES) -> Buffer:
    """Like `decompress`, but the result is valid only until the next call in this thread."""
    into = _INTO.get(codec)
    if into is not None:
        scratch = _scratch.view[:limit]
        try:
            return scratch[: into(data, scratch)]
        except cramjam.DecompressionError as error:
            if BUFFER_TOO_SMALL not in str(error):
                raise _not_of_codec(error) from None
    return decompress(codec, data, limit)


def unfolded(codec: int, data: memoryview, count: int) -> Buffer | None:
    """Like `unfold`, for `count` records; None if it raises, or if the result is very large. Then the slow check decompresses
    the records again, and writes the error message."""
    if count > limits.MAX_BATCH_RECORDS:
        return None
    try:
        return unfold(codec, data, min(limits.MAX_DECOMPRESSED_BATCH_BYTES, max(SMALLEST_BUFFER, MOST_UNFOLDED * len(data))))
    except KafkaError:
        return None


def _decompress_growing(decompress_into: Callable[..., int], data: Buffer, limit: int) -> bytearray:
    size = min(limit, max(SMALLEST_BUFFER, FIRST_GUESS * len(data)))
    while True:
        out = bytearray(size)
        try:
            written = decompress_into(data, out)
        except cramjam.DecompressionError as error:
            if BUFFER_TOO_SMALL not in str(error):
                raise _not_of_codec(error) from None
            if size >= limit:
                raise _too_large(limit) from None
            size = min(limit, size * GROWTH)
        else:
            del out[written:]
            return out


def _compress_lz4(data: Buffer, level: int | None) -> bytes:
    fast = level is None or level == LZ4_FAST_LEVEL
    compressor = cramjam.lz4.Compressor(level=LZ4_FAST if fast else level, content_checksum=False, block_linked=False)
    compressor.compress(bytes(data))
    return bytes(compressor.finish())


def _compress_snappy(data: Buffer) -> bytes:
    parts = [SNAPPY_HEADER]
    view = memoryview(data)
    for start in range(0, len(view), SNAPPY_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + SNAPPY_BLOCK]))
        parts += (INT32.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: Buffer, limit: int) -> bytes | bytearray:
    view = memoryview(data)
    if view[: len(SNAPPY_MAGIC)] != SNAPPY_MAGIC:
        return _decompress_snappy_block(view, limit)
    out = bytearray()
    position = len(SNAPPY_HEADER)
    while position < len(view):
        if position + INT32.size > len(view):
            raise _not_of_codec("snappy: a block without its length")
        (size,) = INT32.unpack_from(view, position)
        position += INT32.size
        if size < 0 or position + size > len(view):
            raise _not_of_codec("snappy: a block past the end")
        out += _decompress_snappy_block(view[position : position + size], limit - len(out))
        position += size
    return out


def _decompress_snappy_block(block: memoryview, limit: int) -> bytearray:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > limit:
            raise _too_large(limit)
        out = bytearray(size)
        cramjam.snappy.decompress_raw_into(block, out)
    except cramjam.DecompressionError as error:
        raise _not_of_codec(error) from None
    return out


def _not_of_codec(reason: object) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, f"Failed to decompress record batch: {reason}")


def _too_large(limit: int) -> KafkaError:
    return KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"The record batch unfolds to more than {limit} bytes.")
