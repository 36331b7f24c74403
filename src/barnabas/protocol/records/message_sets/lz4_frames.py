"""LZ4 frames of magic 0: the checksum in their headers is not the one that LZ4 defines (KIP-57).

Clients of that time used the checksum of the whole header with its magic number; LZ4 uses only the descriptor. As in Kafka,
messages of magic 0 are written with the old checksum, and read with either one.
"""

from __future__ import annotations

from barnabas.protocol.records.batch_header import Buffer
from barnabas.protocol.records.record import invalid

FRAME_MAGIC = b"\x04\x22\x4d\x18"
_FLAGS = len(FRAME_MAGIC)
_CONTENT_SIZE_BIT, _CONTENT_SIZE = 0x08, 8
_DESCRIPTOR = 2  # bytes: flags and block descriptor
_PRIME_1, _PRIME_3, _PRIME_4, _PRIME_5 = 0x9E3779B1, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
_PRIME_2 = 0x85EBCA77
_MASK = 0xFFFFFFFF


def with_right_checksum(frame: Buffer) -> bytes:
    """A frame of magic 0 with the checksum that LZ4 expects.

    Raises:
        KafkaError: INVALID_RECORD if it is no frame.
    """
    return _with_checksum(frame, _FLAGS)


def with_old_checksum(frame: Buffer) -> bytes:
    """A frame with the checksum that clients of magic 0 expect."""
    return _with_checksum(frame, 0)


def _with_checksum(frame: Buffer, start: int) -> bytes:
    if frame[:_FLAGS] != FRAME_MAGIC or len(frame) <= _FLAGS + _DESCRIPTOR:
        raise invalid("Failed to decompress record batch: no LZ4 frame")
    end = _FLAGS + _DESCRIPTOR + (_CONTENT_SIZE if frame[_FLAGS] & _CONTENT_SIZE_BIT else 0)
    if len(frame) <= end:
        raise invalid("Failed to decompress record batch: no LZ4 frame")
    out = bytearray(frame)
    out[end] = short_xxh32(out[start:end]) >> 8 & 0xFF
    return bytes(out)


def short_xxh32(data: Buffer) -> int:
    """xxHash (32 bits, seed 0) of fewer than 16 bytes."""
    value = _PRIME_5 + len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        value = value + int.from_bytes(data[at : at + 4], "little") * _PRIME_3 & _MASK
        value = _rotated(value, 17) * _PRIME_4 & _MASK
    for byte in data[whole:]:
        value = value + byte * _PRIME_5 & _MASK
        value = _rotated(value, 11) * _PRIME_1 & _MASK
    value = (value ^ value >> 15) * _PRIME_2 & _MASK
    value = (value ^ value >> 13) * _PRIME_3 & _MASK
    return value ^ value >> 16


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK
