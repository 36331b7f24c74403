"""Answers as plain data: dicts, lists and scalars that JSON holds, record data taken apart."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import cramjam
import crc32c

from barnabas.protocol.base_message import ZERO_UUID, Message

HEADER = struct.Struct(">qiibIhiqqqhii")  # the header of a batch of format 2
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def plain(message: Message, version: int) -> dict[str, Any]:
    """The fields that `message` has in `version`."""
    result: dict[str, Any] = {}
    for field in message.FIELDS:
        if field.first_version <= version <= field.last_version:
            value = getattr(message, field.name)
            is_records = field.wire_type == "records" and value is not None
            result[field.name] = batches(bytes(value)) if is_records else _plain_value(value, version)
    return result


def _plain_value(value: Any, version: int) -> Any:
    if isinstance(value, Message):
        return plain(value, version)
    if isinstance(value, list | tuple):
        return [_plain_value(each, version) for each in value]
    if isinstance(value, UUID):
        return "zero" if value == ZERO_UUID else str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return text_or_hex(bytes(value))
    return value


def text_or_hex(data: bytes) -> str:
    """Readable where it is ASCII."""
    return data.decode() if data.isascii() and data.decode().isprintable() else "0x" + data.hex()


def batches(data: bytes) -> list[dict[str, Any]]:
    """Every whole batch in `data`: a broker may cut the last one at the limit of the request, and need not."""
    found = []
    position = 0
    while position < len(data):
        size = 12 + int.from_bytes(data[position + 8 : position + 12], "big")
        if len(data) - position < 12 or size > len(data) - position:
            break
        found.append(batch(data[position : position + size]))
        position += size
    return found


def batch(data: bytes) -> dict[str, Any]:
    """One whole batch of format 2."""
    (base_offset, _, leader_epoch, magic, crc, attributes, last_delta, first_ms, max_ms, producer_id, producer_epoch, sequence,
     count) = HEADER.unpack_from(data)  # fmt: skip
    codec = CODECS[attributes & 7]
    return {
        "base_offset": base_offset,
        "leader_epoch": leader_epoch,
        "magic": magic,
        "crc_is_right": crc == crc32c.crc32c(data[21:]),
        "codec": codec,
        "timestamp_type": "append" if attributes & 8 else "create",
        "is_transactional": bool(attributes & 16),
        "is_control": bool(attributes & 32),
        "last_offset_delta": last_delta,
        "base_timestamp_ms": first_ms,
        "max_timestamp_ms": max_ms,
        "producer_id": producer_id,
        "producer_epoch": producer_epoch,
        "base_sequence": sequence,
        "count": count,
        "records": _records(decompress(codec, data[HEADER.size :]), count),
    }


def decompress(codec: str, data: bytes) -> bytes:
    """The records of a batch; snappy comes bare or in the frames of the Java library."""
    if codec == "none":
        return data
    if codec == "gzip":
        return bytes(cramjam.gzip.decompress(data))
    if codec == "lz4":
        return bytes(cramjam.lz4.decompress(data))
    if codec == "zstd":
        return bytes(cramjam.zstd.decompress(data))
    if not data.startswith(b"\x82SNAPPY\0"):
        return bytes(cramjam.snappy.decompress_raw(data))
    out, position = bytearray(), 16
    while position < len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        out += bytes(cramjam.snappy.decompress_raw(data[position + 4 : position + 4 + size]))
        position += 4 + size
    return bytes(out)


def _records(data: bytes, count: int) -> list[dict[str, Any]]:
    found = []
    position = 0
    for _ in range(count):
        size, position = _varint(data, position)
        found.append(_record(data[position : position + size]))
        position += size
    return found


def _record(data: bytes) -> dict[str, Any]:
    timestamp_delta, position = _varint(data, 1)
    offset_delta, position = _varint(data, position)
    key, position = _bytes(data, position)
    value, position = _bytes(data, position)
    count, position = _varint(data, position)
    headers = []
    for _ in range(count):
        name, position = _bytes(data, position)
        content, position = _bytes(data, position)
        headers.append([name, content])
    return {"offset_delta": offset_delta, "timestamp_delta": timestamp_delta, "key": key, "value": value, "headers": headers}


def _bytes(data: bytes, position: int) -> tuple[str | None, int]:
    size, position = _varint(data, position)
    if size < 0:
        return None, position
    content = data[position : position + size]
    shown = text_or_hex(content) if size <= 64 else f"{size} bytes, crc {crc32c.crc32c(content):08x}"
    return shown, position + size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (result >> 1) ^ -(result & 1), position
        shift += 7
