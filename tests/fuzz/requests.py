"""Valid requests of every API and version, to be damaged: an empty one and one with something in every field."""

from __future__ import annotations

import random
from functools import cache
from uuid import UUID

from barnabas.protocol.base_message import FieldSpec, Message
from barnabas.protocol.codec import decode_request, encode
from barnabas.protocol.records.batch import Record, build_batch
from barnabas.protocol.request_headers import read_request_header, write_request_header
from barnabas.server.answers import request_class
from barnabas.server.api_table import SERVED
from barnabas.server.apis.api_versions import served_versions

NOW_MS = 1_700_000_000_000
VALUES = {"bool": True, "float64": 0.5, "uuid": UUID(int=7), "bytes": b"metadata"}
SMALL_INTEGER = 1
INTEGER_BITS = {"int8": 8, "int16": 16, "uint16": 16, "int32": 32, "int64": 64}
EDGES = (0, 0, 1, 1, 2, -1, -2, 18, 100, 1_000, -(2**63), 2**63 - 1)
STRINGS = ("topic", "topic", "group", "member", "", None, ".", "..", "a" * 300, "\0", "\N{SNOWMAN}", "-1", "consumer", "cleanup.policy",
           "retention.ms", "__consumer_offsets", "0", "1", "range")  # fmt: skip
OTHER = {
    "bool": (True, False),
    "float64": (0.0, -1.5, float("inf"), float("nan")),
    "uuid": (UUID(int=0), UUID(int=7), UUID(int=2**128 - 1)),
}
MOST_DAMAGES = 6


@cache
def frames() -> tuple[bytes, ...]:
    """Frames (without their size) of every request that the broker serves."""
    made: list[bytes] = []
    for api_key in sorted(SERVED):
        first, last = served_versions(api_key)
        for version in range(first, last + 1):
            for message in (request_class(api_key)(), filled(request_class(api_key))):
                try:
                    body = encode(message, version)
                except ValueError:  # a field that may not be null in this version
                    continue
                made.append(write_request_header(api_key, version, len(made), "fuzz") + bytes(body))
    return tuple(made)


def filled(cls: type[Message]) -> Message:
    """One with an element in every array."""
    message = cls()
    for field in cls.FIELDS:
        value = _value(field)
        setattr(message, field.name, [value] if field.is_array else value)
    return message


def _value(field: FieldSpec) -> object:
    name, wire_type, item = field.name, field.wire_type, field.item
    if wire_type == "struct":
        return filled(item)
    if wire_type == "records":
        return build_batch([Record(0, NOW_MS, b"key", b"value", ())])
    if wire_type == "string":
        return "topic" if name in ("name", "topic", "topics", "topic_names") else "text"
    return VALUES.get(wire_type, SMALL_INTEGER)


def odd(choices: random.Random) -> bytes:
    """The frame of a request that is well-formed and full of unlikely values."""
    while True:
        api_key = choices.choice(sorted(SERVED))
        version = choices.randint(*served_versions(api_key))
        try:
            body = encode(_odd(request_class(api_key), choices), version)
        except (ValueError, AttributeError, TypeError):  # null in a field that is not nullable in this version
            continue
        return write_request_header(api_key, version, choices.randrange(2**31), choices.choice(("fuzz", None, ""))) + bytes(body)


def altered(frame: bytes, choices: random.Random) -> bytes:
    """A request, given by its frame, with some of its values changed: as well-formed as it was."""
    header = read_request_header(memoryview(frame))
    message = decode_request(request_class(header.api_key), header.api_version, memoryview(frame), header.body)
    while True:
        for _ in range(choices.randrange(4)):
            _alter(message, choices)
        try:
            return frame[: header.body] + bytes(encode(message, header.api_version))
        except (ValueError, AttributeError, TypeError):  # null in a field that is not nullable in this version
            message = decode_request(request_class(header.api_key), header.api_version, memoryview(frame), header.body)


def _alter(message: Message, choices: random.Random) -> None:
    """Change one value somewhere in the message."""
    if not message.FIELDS:
        return
    field = choices.choice(message.FIELDS)
    value = getattr(message, field.name)
    if field.wire_type == "struct" and value and choices.randrange(4):
        _alter(choices.choice(value) if field.is_array else value, choices)
    elif field.is_array:
        count = choices.choice((0, 1, 2))
        setattr(message, field.name, [*(value or ())][:1] + [_odd_value(field, choices) for _ in range(count)])
    else:
        setattr(message, field.name, _odd_value(field, choices))


def _odd(cls: type[Message], choices: random.Random) -> Message:
    message = cls()
    for field in cls.FIELDS:
        if field.is_array:
            setattr(message, field.name, [_odd_value(field, choices) for _ in range(choices.choice((0, 1, 1, 2, 3)))])
        elif choices.randrange(4):  # a default often lets a request get further
            setattr(message, field.name, _odd_value(field, choices))
    return message


def _odd_value(field: FieldSpec, choices: random.Random) -> object:
    wire_type, item = field.wire_type, field.item
    if wire_type == "struct":
        return _odd(item, choices)
    if wire_type in INTEGER_BITS:
        edge = 2 ** (INTEGER_BITS[wire_type] - 1)
        return max(0 if wire_type == "uint16" else -edge, min(edge - 1, choices.choice(EDGES)))
    if wire_type == "string":
        return choices.choice(STRINGS)
    if wire_type in ("bytes", "records"):
        records = build_batch([Record(0, NOW_MS, b"key", b"value", ())])
        return choices.choice((None, b"", b"x", records, damaged(records, choices), choices.randbytes(80)))
    return choices.choice(OTHER[wire_type])


def damaged(frame: bytes, choices: random.Random) -> bytes:
    """`frame` with a few bytes changed, lost, doubled or put between; sometimes as it is."""
    data = bytearray(frame)
    for _ in range(choices.randrange(MOST_DAMAGES)):
        at = choices.randrange(len(data) + 1)
        kind = choices.randrange(4)
        if kind == 0 and at < len(data):
            data[at] = choices.choice((0, 1, 0x7F, 0x80, 0xFF, choices.randrange(256)))
        elif kind == 1:
            del data[at : at + choices.randint(1, 8)]
        elif kind == 2:
            data[at:at] = data[at : at + choices.randint(1, 32)]
        else:
            data[at:at] = choices.randbytes(choices.randint(1, 8))
    return bytes(data)
