"""Registered schemas as columns: types, values to Arrow and back for each format, and records that do not fit."""

from __future__ import annotations

import datetime
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from barnabas.schemas.arrow.columns import Reader, RegistryAddress, Writer, decode, encode, headers_of
from barnabas.schemas.arrow.shapes import shape_of
from barnabas.schemas.codecs import TakesRows, codec_of
from barnabas.schemas.errors import CannotEncode, SchemaDataError
from barnabas.schemas.framing import VALUE_HEADER, id_prefix
from barnabas.schemas.registered import RegisteredSchema
from barnabas.schemas.registry_client import RegistryClient, RegistryUnreachable
from barnabas.schemas.serializer import Serializer

AT = datetime.datetime(2026, 1, 2, 3, 4, 5, 6000, datetime.UTC)
UTC = pa.timestamp("us", "UTC")
NODE = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"], "default": None}]}


def avro(*fields: Any) -> str:
    return json.dumps(
        {"type": "record", "name": "R", "fields": [{"name": f"f{n}", "type": kind} for n, kind in enumerate(fields)]}
    )


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


AVRO: list[tuple[Any, Any, Any]] = [
    ("int", pa.int32(), 7),
    ("long", pa.int64(), 2**40),
    ("float", pa.float32(), 0.5),
    ("double", pa.float64(), 0.1),
    ("boolean", pa.bool_(), True),
    ("bytes", pa.binary(), b"\0\1"),
    (["null", "string"], pa.string(), None),
    (["null", "string"], pa.string(), "é"),
    (["int", "long"], pa.int64(), 2**40),
    (["float", "double"], pa.float64(), 0.5),
    (logical("bytes", "decimal", precision=9, scale=2), pa.decimal128(9, 2), Decimal("1.50")),
    (logical("bytes", "decimal", precision=50), pa.string(), "123"),
    (logical("string", "uuid"), pa.string(), "01234567-89ab-cdef-0123-456789abcdef"),
    (logical("int", "date"), pa.date32(), datetime.date(2026, 1, 2)),
    (logical("int", "time-millis"), pa.int32(), 1),
    (logical("long", "time-micros"), pa.int64(), 3_600_000_001),
    (logical("long", "timestamp-millis"), UTC, AT),
    (logical("long", "timestamp-micros"), UTC, AT),
    (logical("long", "local-timestamp-micros"), pa.timestamp("us"), AT.replace(tzinfo=None)),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, pa.string(), "B"),
    ({"type": "fixed", "name": "F", "size": 2}, pa.binary(), b"ab"),
    ({"type": "array", "items": ["null", logical("int", "time-millis")]}, pa.list_(pa.int32()), [1, None]),
    ({"type": "map", "values": ["null", "int"]}, pa.map_(pa.string(), pa.int32()), {"a": 1, "b": None}),
    (
        ["null", "int", "string", {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}]}],
        pa.struct([("member0", pa.int32()), ("member1", pa.string()), ("member2", pa.struct([("x", pa.int32())]))]),
        {"member0": None, "member1": None, "member2": {"x": 1}},
    ),
    (["long", logical("int", "date"), {"type": "fixed", "name": "F", "size": 1}, "boolean"], None, {"member3": True}),
]


def reader_of(client: RegistryClient, schema: RegisteredSchema, **more: Any) -> Reader:
    return Reader(RegistryAddress.of(client.urls[0]), schema, **more)


def rows_of(array: Any) -> list[Any]:
    rows: list[Any] = array.to_pylist(maps_as_pydicts="strict")
    return rows


def there_and_back(
    client: RegistryClient, serializer: Serializer, rows: list[Any], kind: Any, message: str | None = None
) -> list[Any]:
    data = encode(Writer(serializer.schema, message), pa.array(rows, kind))
    found = decode(reader_of(client, serializer.schema, message=message), data)
    assert found.field("reason").null_count == len(rows), found.field("reason").to_pylist()
    assert found.field("value").type == kind
    return rows_of(found.field("value"))


def test_avro(client: RegistryClient) -> None:
    serializer = Serializer(client, subject="arrow-avro", schema=avro(*(kind for kind, _, _ in AVRO)).replace('"F"', '"G"', 1))
    kinds: Any = shape_of(serializer.schema).type
    for number, (schema, kind, _) in enumerate(AVRO):
        assert kind is None or kinds.field(f"f{number}").type == kind, schema
    row = {f"f{number}": value for number, (_, _, value) in enumerate(AVRO)}
    (found,) = there_and_back(client, serializer, [row], kinds)
    assert found == row | {f"f{len(AVRO) - 1}": {"member0": None, "member1": None, "member2": None, "member3": True}}


JSON_SCHEMA = {
    "type": "object",
    "properties": {
        "i": {"type": "integer"},
        "n": {"oneOf": [{"type": "null"}, {"type": "number"}]},
        "s": {"$ref": "#/definitions/word"},
        "m": {"type": "object", "additionalProperties": {"type": "boolean"}},
        "l": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": ["string", "null"]}}}},
        "any": {},
        "two": {"type": ["integer", "string"]},
        "tree": {"$ref": "#"},
        "word": {"enum": ["a", "b"]},
        "one": {"allOf": [{"type": "boolean"}]},
    },
    "required": ["i"],
    "definitions": {"word": {"type": "string"}},
}


def test_json(client: RegistryClient) -> None:
    serializer = Serializer(client, subject="arrow-json", schema=json.dumps(JSON_SCHEMA), schema_type="JSON")
    kind = pa.struct([
        ("i", pa.int64()), ("n", pa.float64()), ("s", pa.string()), ("m", pa.map_(pa.string(), pa.bool_())),
        ("l", pa.list_(pa.struct([("x", pa.string())]))), ("any", pa.string()), ("two", pa.string()), ("tree", pa.string()),
        ("word", pa.string()), ("one", pa.bool_()),
    ])  # fmt: skip
    assert shape_of(serializer.schema).type == kind
    full = {
        "i": 1, "n": 0.5, "s": "x", "m": {"a": True}, "l": [{"x": None}], "any": '{"b": [1]}', "two": '"t"', "tree": '{"i": 2}',
        "word": "a", "one": False,
    }  # fmt: skip
    rows = [full, {"i": 2, **dict.fromkeys((name for name in full if name != "i"), None)}]
    assert there_and_back(client, serializer, rows, kind) == rows
    data: list[Any] = encode(Writer(serializer.schema), pa.array(rows, kind)).to_pylist()
    assert json.loads(data[0][5:])["tree"] == {"i": 2}
    assert json.loads(data[1][5:]) == {"i": 2, "n": None}  # fields that must not be null are left out
    big = id_prefix(serializer.schema.id or 0) + b'{"i": 99999999999999999999}'
    found = rows_of(decode(reader_of(client, serializer.schema), pa.array([big, data[0]])))
    assert found[0]["reason"].startswith("the value does not fit the column: ")
    assert (found[0]["value"], found[1]["reason"], found[1]["value"]["i"]) == (None, None, 1)


PROTO = """syntax = "proto3"; package p;
import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto"; import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
message Other { int32 x = 1; }
message M {
  enum E { A = 0; B = 1; }
  int32 i = 1; uint32 u = 2; uint64 big = 3; optional int64 maybe = 4; E e = 5; bytes data = 6; bool on = 7; float f = 8;
  google.protobuf.Timestamp at = 9; google.protobuf.Duration took = 10; google.protobuf.StringValue text = 11;
  google.protobuf.Struct any = 12; Other other = 13; repeated Other others = 14; map<int32, Other> by = 15; repeated E es = 16;
  oneof choice { string left = 17; double right = 18; }
}
message Node { Node next = 1; }
"""


ROWS = """syntax = "proto3"; package rows; import "google/protobuf/timestamp.proto"; enum E { A = 0; B = 1; }
message R { optional int32 i = 1; int64 l = 2; optional float f = 3; double d = 4; optional bool b = 5; string s = 6; optional bytes y = 7;
  E e = 8; repeated sint32 many = 9; Inner one = 10; repeated Inner some = 11;
  google.protobuf.Timestamp at = 12; repeated google.protobuf.Timestamp ats = 13;
  message Inner { optional string t = 1; fixed32 u = 2; } }"""
ROW: dict[str, Any] = {
    "i": 0, "l": -1, "f": 0.5, "d": 0.0, "b": False, "s": "é", "y": b"\0", "e": "B", "many": [1, -1],
    "one": {"t": "", "u": 7}, "some": [{"t": None, "u": None}], "at": AT,
    "ats": [datetime.datetime(year, 12, 31, 23, 59, 59, 999999, datetime.UTC) for year in (1, 1969, 9999)],
}  # fmt: skip
OTHER_ROWS = [
    dict.fromkeys(ROW), {**ROW, "e": "1"}, {**ROW, "d": math.nan, "f": math.inf}, {**ROW, "one": None, "many": [], "s": ""},
]  # fmt: skip


def test_rows_are_protobuf_messages_as_their_json_is(client: RegistryClient) -> None:
    serializer = Serializer(client, subject="arrow-rows", schema=ROWS, schema_type="PROTOBUF")
    schema = serializer.schema
    codec, shape = codec_of(schema), shape_of(schema)
    assert isinstance(codec, TakesRows)
    assert codec.takes_rows
    rows: Any = pa.array([ROW, *OTHER_ROWS], shape.type)
    assert shape.from_arrow is not None
    assert schema.id is not None
    expected = [
        id_prefix(schema.id, codec.path) + codec.encode(codec.from_json(shape.from_arrow(each))) for each in rows.to_pylist()
    ]
    assert encode(Writer(schema), rows).to_pylist() == expected
    with pytest.raises(CannotEncode, match="nobody"):
        encode(Writer(schema), pa.array([{"e": "nobody"}], shape.type))


def test_protobuf(client: RegistryClient) -> None:
    serializer = Serializer(client, subject="arrow-proto", schema=PROTO, schema_type="PROTOBUF")
    other = pa.struct([("x", pa.int32())])
    kind = pa.struct([
        ("i", pa.int32()), ("u", pa.int64()), ("big", pa.decimal128(20, 0)), ("maybe", pa.int64()), ("e", pa.string()),
        ("data", pa.binary()), ("on", pa.bool_()), ("f", pa.float32()), ("at", UTC), ("took", pa.duration("us")), ("text", pa.string()),
        ("any", pa.string()), ("other", other), ("others", pa.list_(other)), ("by", pa.map_(pa.int32(), other)),
        ("es", pa.list_(pa.string())), ("left", pa.string()), ("right", pa.float64()),
    ])  # fmt: skip
    assert shape_of(serializer.schema, "M").type == kind
    full = {
        "i": -1, "u": 2**32 - 1, "big": Decimal(2**64 - 1), "maybe": 0, "e": "B", "data": b"\xff", "on": True, "f": 0.5, "at": AT,
        "took": datetime.timedelta(microseconds=-1_500_000), "text": "", "any": '{"a": 1.0}', "other": {"x": 0}, "others": [{"x": 1}],
        "by": {7: {"x": 2}}, "es": ["B", "A"], "left": None, "right": 0.0,
    }  # fmt: skip
    empty: dict[str, Any] = {
        "i": 0, "u": 0, "big": Decimal(0), "e": "A", "data": b"", "on": False, "f": 0.0, "others": [], "by": {}, "es": [],
        **dict.fromkeys(("maybe", "at", "took", "text", "any", "other", "left", "right")),
    }  # fmt: skip
    assert there_and_back(client, serializer, [full, empty, dict.fromkeys(full)], kind, "M") == [full, empty, empty]
    of_another = encode(Writer(serializer.schema, "Other"), pa.array([{"x": 1}]))
    (found,) = rows_of(decode(reader_of(client, serializer.schema, message="M"), of_another))
    assert found == {"value": None, "reason": "the message is a p.Other, not a p.M"}
    unknown = id_prefix(serializer.schema.id or 0, (1,)) + b"\x28\x09"
    assert rows_of(decode(reader_of(client, serializer.schema, message="M"), pa.array([unknown])))[0]["value"]["e"] == "9"


def test_headers_nulls_and_what_cannot_be_read(client: RegistryClient) -> None:
    serializer = Serializer(client, subject="arrow-more", schema=avro("int"))
    assert (
        headers_of([(VALUE_HEADER, Writer(serializer.schema))]) == Serializer(client, subject="arrow-more", ids="headers").headers
    )
    bare = encode(Writer(serializer.schema, in_headers=True), pa.array([{"f0": 1}, None]))
    assert bare.to_pylist() == [b"\2", None]
    named = [{"key": name, "value": value} for name, value in headers_of([(VALUE_HEADER, Writer(serializer.schema))])]
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    reader = reader_of(client, serializer.schema)
    data, headers = (
        pa.array([b"\2", None, b"\2", b"\2"]),
        pa.array([named, named, None, [{"key": VALUE_HEADER, "value": b"?"}]], kind),
    )
    assert [(row["value"], row["reason"]) for row in rows_of(decode(reader, data, headers))] == [
        ({"f0": 1}, None),
        (None, None),
        (None, "it carries no id of a schema"),
        (None, f"the header {VALUE_HEADER} holds no id of a schema"),
    ]
    with pytest.raises(CannotEncode, match=r"the value does not fit the Avro schema: f0: 'x' is not int"):
        encode(Writer(serializer.schema), pa.array([{"f0": "x"}]))
    other = Reader(RegistryAddress.of("http://127.0.0.1:1", {"basic.auth.user.info": "a:secret"}), serializer.schema)
    assert "secret" not in repr(other)
    with pytest.raises(RegistryUnreachable):  # not an error of the record
        decode(other, pa.array([id_prefix(1)]))


@pytest.mark.parametrize(("text", "kind"), [(json.dumps(NODE), "AVRO"), (PROTO, "PROTOBUF")])
def test_recursive_schemas_are_refused(client: RegistryClient, text: str, kind: str) -> None:
    schema = Serializer(client, subject=f"recursive-{kind}", schema=text, schema_type=kind).schema
    with pytest.raises(SchemaDataError, match="Node contains itself, and tables have no such type"):
        shape_of(schema, "Node")


def test_an_avro_schema_with_a_name_that_no_column_can_have_is_refused() -> None:
    schema = avro({"type": "record", "name": "I", "fields": [{"name": "\ud800", "type": "int"}]})
    with pytest.raises(SchemaDataError, match="half of a surrogate pair"):
        shape_of(RegisteredSchema(1, None, "AVRO", schema))
