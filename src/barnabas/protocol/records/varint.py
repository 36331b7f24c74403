"""Signed varints: zigzag, then seven bits a byte, lowest first (as in Protocol Buffers)."""

from __future__ import annotations

from barnabas.protocol.records.batch_header import Buffer

MAX_VARINT_BITS = 35  # five bytes carry 32 bits
MAX_VARLONG_BITS = 70  # ten bytes carry 64


class MalformedVarint(ValueError):
    """A varint that is cut off or longer than its type."""


def read_varint(data: Buffer, position: int, max_bits: int = MAX_VARINT_BITS) -> tuple[int, int]:
    """The number at `position`, and the position after it.

    Raises:
        MalformedVarint: the bytes end within it, or it has more bytes than its type needs.
    """
    value = shift = 0
    try:
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift >= max_bits:
                raise MalformedVarint("varint is too long")
    except IndexError:
        raise MalformedVarint("varint is cut off") from None
    value &= (1 << 32) - 1 if max_bits == MAX_VARINT_BITS else (1 << 64) - 1
    return (value >> 1) ^ -(value & 1), position


def read_varlong(data: Buffer, position: int) -> tuple[int, int]:
    """Like `read_varint`, for 64 bits."""
    return read_varint(data, position, MAX_VARLONG_BITS)


def varint(value: int) -> bytes:
    """The bytes of `value`, an int32 or int64."""
    value = value << 1 if value >= 0 else (-value << 1) - 1
    if value < 0x80:
        return SHORT[value]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


SHORT = [bytes([value]) for value in range(0x80)]
