"""The names of schemas, by cases."""

from __future__ import annotations

from base64 import b64encode

import pytest

from barnabas.schemas.record_names import NoName, record_names


def field(number: int, content: bytes) -> bytes:
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


INNER = field(1, b"Inner")
MESSAGE = field(1, b"Order") + field(2, b"\x0a\x01a\x18\x01") + field(3, INNER)
FILE = (
    field(1, b"a.proto")
    + field(2, b"shop.v1")
    + field(4, MESSAGE)
    + field(4, field(1, b"Item"))
    + b"\x28\x03"
    + field(12, b"proto3")
)


@pytest.mark.parametrize(
    ("kind", "text", "names"),
    [
        ("AVRO", '{"type":"record","name":"Order","fields":[]}', ["Order"]),
        ("AVRO", '{"type":"record","name":"Order","namespace":"shop","fields":[]}', ["shop.Order"]),
        ("AVRO", '{"type":"enum","name":"a.b.C","namespace":"shop","symbols":[]}', ["a.b.C"]),
        ("AVRO", '"string"', ["string"]),
        ("AVRO", '{"type":"long","logicalType":"timestamp-millis"}', ["long"]),
        ("JSON", '{"title":"Order","type":"object"}', ["Order"]),
        ("PROTOBUF", b64encode(FILE).decode(), ["shop.v1.Order", "shop.v1.Order.Inner", "shop.v1.Item"]),
        ("PROTOBUF", b64encode(field(4, field(1, b"M"))).decode(), ["M"]),
    ],
)
def test_names(kind: str, text: str, names: list[str]) -> None:
    assert record_names(kind, text) == names


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("AVRO", '["null","string"]'),
        ("AVRO", "{"),
        ("AVRO", '{"type":["null"]}'),
        ("JSON", '{"type":"object"}'),
        ("JSON", '{"title":7}'),
        ("JSON", "true"),
        ("PROTOBUF", "syntax"),
        ("PROTOBUF", b64encode(FILE[:-3]).decode()),
        ("PROTOBUF", b64encode(b"\x0f").decode()),
        ("PROTOBUF", b64encode(b"\xff").decode()),
    ],
)
def test_schemas_without_a_name(kind: str, text: str) -> None:
    with pytest.raises(NoName):
        record_names(kind, text)
