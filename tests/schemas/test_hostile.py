"""Bytes and values from people who mean harm: each ends in one error, in little time and memory."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas import limits
from barnabas.schemas import framing
from barnabas.schemas.avro_bounds import has_weightless_items, is_recursive
from barnabas.schemas.avro_codec import AvroCodec
from barnabas.schemas.avro_names import whole_schema
from barnabas.schemas.codecs import Codec, codec_of
from barnabas.schemas.errors import CannotDecode, CannotEncode
from barnabas.schemas.json_codec import JsonCodec
from barnabas.schemas.registered import RegisteredSchema
from barnabas.schemas.registry_client import RegistryClient
from barnabas.schemas.serializer import Deserializer, Serializer

LIST = {"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}
TREE = {"type": "record", "name": "T", "fields": [{"name": "under", "type": {"type": "array", "items": "T"}}]}
EMPTY = {"type": "record", "name": "E", "fields": [{"name": "n", "type": "null"}]}
WIDE = {"type": "record", "name": "W", "fields": [
    {"name": f"f{number}", "type": kind}
    for number, kind in enumerate([
        "string", "bytes", "long", "double", ["null", "int", "string"], {"type": "map", "values": "float"},
        {"type": "array", "items": {"type": "enum", "name": "S", "symbols": ["A", "B"]}}, {"type": "fixed", "name": "F", "size": 3},
        {"type": "int", "logicalType": "date"}, {"type": "long", "logicalType": "timestamp-millis"},
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, {"type": "string", "logicalType": "uuid"},
        {"type": "long", "logicalType": "time-micros"},
    ])
]}  # fmt: skip


def avro(schema: Any) -> AvroCodec:
    return AvroCodec(whole_schema(schema, []))


@pytest.mark.parametrize(
    ("schema", "recursive", "weightless"),
    [
        (LIST, True, False),
        (TREE, True, False),
        (["null", {"type": "map", "values": LIST}], True, False),
        (WIDE, False, False),
        ({"type": "array", "items": "null"}, False, True),
        ({"type": "map", "values": "null"}, False, False),
        ({"type": "array", "items": ["null"]}, False, False),
        ({"type": "array", "items": EMPTY}, False, True),
        ({"type": "array", "items": {"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}}, False, True),
        ({"type": "record", "name": "R", "fields": [{"name": "e", "type": EMPTY}, {"name": "a", "type": {"type": "array", "items": "E"}}]},
         False, True),
        ({"type": "record", "name": "R", "fields": [{"name": "l", "type": {"type": "record", "name": "M", "fields": [
            {"name": "up", "type": {"type": "array", "items": "R"}}]}}]}, True, False),
    ],
)  # fmt: skip
def test_schemas_that_need_care(schema: Any, recursive: bool, weightless: bool) -> None:
    whole = whole_schema(schema, [])
    assert (is_recursive(whole), has_weightless_items(whole)) == (recursive, weightless)


def chain(levels: int) -> Any:
    value: Any = None
    for _ in range(levels):
        value = {"next": value}
    return value


@pytest.mark.parametrize("levels", [101, 400, 501, 5_000, 1_000_000])
def test_data_that_nests_too_deep(levels: int) -> None:
    codec = avro(LIST)
    deepest = codec.encode(chain(limits.MAX_VALUE_DEPTH))
    assert codec.decode(deepest) == chain(limits.MAX_VALUE_DEPTH)
    assert codec.encode(codec.from_json(chain(limits.MAX_VALUE_DEPTH))) == deepest
    with pytest.raises(CannotDecode, match=r"nested deeper than 100|recursion"):
        codec.decode(b"\2" * (levels - 1) + b"\0")
    with pytest.raises(CannotDecode, match=r"nested deeper than 100|recursion"):
        avro(TREE).decode(b"\2" * levels + b"\0" * (levels + 1))
    as_json = JsonCodec({}, [])
    with pytest.raises(CannotDecode, match=r"nested deeper than 100|recursion"):
        as_json.decode(b"[" * levels + b"]" * levels)
    with pytest.raises(CannotEncode, match="does not fit the Avro schema"):
        avro("int").from_json(chain(min(levels, 5_000)))
    for encode in (codec.encode, codec.from_json, as_json.encode):
        with pytest.raises(CannotEncode, match=r"nested deeper than 100|[Rr]ecursion"):
            encode(chain(min(levels, 5_000)))


def test_a_reader_that_leaves_the_nested_part_out() -> None:
    written = {"type": "record", "name": "R", "fields": [{"name": "l", "type": LIST}, {"name": "i", "type": "int", "default": 0}]}
    codec = AvroCodec(whole_schema(written, []), {"type": "record", "name": "R", "fields": [{"name": "i", "type": "int"}]})
    with pytest.raises(CannotDecode):
        codec.decode(b"\2" * 100_000 + b"\0\4")
    assert codec.decode(b"\2" * 3 + b"\0\4") == {"i": 2}


def test_items_without_bytes_are_not_read() -> None:
    codec = avro({"type": "array", "items": "null"})
    with pytest.raises(CannotDecode, match="an array of items without bytes"):
        codec.decode(b"\xff\xff\xff\xff\x7f\0")


PROTO = """syntax = "proto3"; import "google/protobuf/struct.proto";
message M { M m = 1; repeated int32 i = 2; string s = 3; map<string, M> by = 4; google.protobuf.Value v = 5; }"""


@pytest.fixture(scope="module")
def codecs(registry_url: str) -> list[Codec]:
    with RegistryClient(registry_url) as client:
        made = Serializer(client, subject="hostile", schema=PROTO, schema_type="PROTOBUF").codec
    return [avro(WIDE), avro(TREE), JsonCodec({"type": "object", "additionalProperties": {"type": "integer"}}, []), made]


def assert_same_again(codec: Codec, value: Any) -> None:
    """The JSON of a value leads to the same value again."""
    text = json.dumps(codec.to_json(value), allow_nan=False)
    again = codec.decode(codec.encode(codec.from_json(json.loads(text))))
    assert json.dumps(codec.to_json(again), allow_nan=False) == text


@settings(max_examples=300)
@given(data=st.binary(max_size=200))
def test_any_bytes_are_decoded_or_refused(codecs: list[Codec], data: bytes) -> None:
    for codec in codecs:
        with suppress(CannotDecode):
            assert_same_again(codec, codec.decode(data))


@settings(max_examples=100)
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["m", "f0", "f4", "under", "x"]), inner, max_size=3)
        ),
    )
)
def test_any_json_is_encoded_or_refused(codecs: list[Codec], value: Any) -> None:
    for codec in codecs:
        with suppress(CannotEncode):
            assert_same_again(codec, codec.decode(codec.encode(codec.from_json(value))))


def test_protobuf_that_nests_too_deep(client: RegistryClient) -> None:
    made = Serializer(client, subject="hostile", schema=PROTO, schema_type="PROTOBUF")
    value: dict[str, Any] = {}
    for _ in range(200):
        value = {"m": value}
    with pytest.raises(CannotEncode):
        made.encode_json(value)
    data = b""
    for _ in range(200):
        size = len(data)
        length = bytes([size & 0x7F | 0x80, size >> 7]) if size > 0x7F else bytes([size])
        data = b"\x0a" + length + data
    with pytest.raises(CannotDecode):
        Deserializer(client).decode_json(framing.id_prefix(made.schema.id or 0, (0,)) + data)


@pytest.mark.parametrize(
    ("schema_type", "opening", "inside", "closing"),
    [("AVRO", '{"type":"array","items":', '"int"', "}"), ("JSON", '{"properties":{"a":', "{}", "}}")],
)
@pytest.mark.parametrize("depth", [600, 5000])
def test_schemas_that_are_nested_too_deep_are_refused(
    schema_type: str, opening: str, inside: str, closing: str, depth: int
) -> None:
    schema = RegisteredSchema(1, None, schema_type, opening * depth + inside + closing * depth)
    with pytest.raises(CannotDecode, match=r"(?i)schema cannot be used"):
        codec_of(schema)
