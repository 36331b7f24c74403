"""Framing, names of subjects, values from JSON and to JSON, and every way in which a value or its bytes can be wrong."""

from __future__ import annotations

import datetime
import json
import time
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas import limits
from barnabas.schemas import framing, serializer
from barnabas.schemas.avro_codec import AvroCodec
from barnabas.schemas.avro_names import whole_schema
from barnabas.schemas.codecs import codec_of
from barnabas.schemas.errors import CannotDecode, CannotEncode, NotFramed, SchemaDataError
from barnabas.schemas.registered import RegisteredSchema
from barnabas.schemas.registry_client import RegistryClient
from barnabas.schemas.serializer import Deserializer, Serializer

GUID = "01234567-89ab-cdef-0123-456789abcdef"


@given(st.integers(1, 2**32 - 1), st.lists(st.integers(0, 2**31), min_size=1, max_size=9), st.binary())
def test_what_is_framed_is_split(schema_id: int, path: list[int], body: bytes) -> None:
    framed = framing.split(framing.id_prefix(schema_id, path) + body)
    assert (framed.schema, framed.message()) == (schema_id, (tuple(path), body))
    headers = [("other", b""), (framing.KEY_HEADER, framing.guid_header(GUID, path))]
    framed = framing.split(body, headers, is_key=True)
    assert (framed.schema, framed.message()) == (GUID, (tuple(path), body))


@given(st.binary())
def test_any_bytes_are_split_or_refused(data: bytes) -> None:
    with suppress(CannotDecode):
        framed = framing.split(data)
        path, body = framed.message()
        head = (
            framing.id_prefix(framed.schema, path) if isinstance(framed.schema, int) else framing.guid_header(framed.schema, path)
        )
        assert framing.split(head + body).message() == (path, body)


@pytest.mark.parametrize("data", [b"", b"\0\0\0\0", b"\0\0\0\0\0abc", b"\x02\0\0\0\1", b"\1" + bytes(15), b"text"])
def test_bytes_without_an_id(data: bytes) -> None:
    with pytest.raises(NotFramed):
        framing.split(data)
    with pytest.raises(CannotDecode, match="the header __value_schema_id holds no id"):
        framing.split(b"x", {"__value_schema_id": data})


@pytest.mark.parametrize(
    ("schema", "value", "printed"),
    [
        ("int", 5, 5),
        ("double", 5, 5.0),
        ("double", "NaN", "NaN"),
        ("bytes", "AAE=", "AAE="),
        (["null", "string"], None, None),
        (["null", "string"], "x", "x"),
        (["null", "string"], {"string": "x"}, "x"),
        (["int", "string"], {"int": 3}, 3),
        ({"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}, "12.30", "12.30"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}, 12.5, "12.50"),
        ({"type": "string", "logicalType": "uuid"}, GUID, GUID),
        ({"type": "int", "logicalType": "date"}, "2026-01-02", "2026-01-02"),
        ({"type": "int", "logicalType": "date"}, 0, "1970-01-01"),
        ({"type": "int", "logicalType": "time-millis"}, "03:04:05.600000", "03:04:05.600000"),
        ({"type": "long", "logicalType": "timestamp-millis"}, "2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ({"type": "long", "logicalType": "timestamp-micros"}, 1, "1970-01-01T00:00:00.000001Z"),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, "2026-01-02T03:04:05", "2026-01-02T03:04:05"),
        ({"type": "array", "items": ["null", "long"]}, [1, None], [1, None]),
        ({"type": "map", "values": "boolean"}, {"a": True}, {"a": True}),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "B"),
        ({"type": "fixed", "name": "F", "size": 2}, "AAE=", "AAE="),
        (
            ["null", {"type": "record", "name": "n.A", "fields": [
                {"name": "a", "type": "int"}, {"name": "next", "type": ["null", "A"], "default": None}]}],
            {"A": {"a": 1, "next": {"a": 2}}},
            {"a": 1, "next": {"a": 2, "next": None}},
        ),
    ],
)  # fmt: skip
def test_avro_from_json_and_back(schema: Any, value: Any, printed: Any) -> None:
    codec = AvroCodec(whole_schema(schema, []))
    found = codec.to_json(codec.decode(codec.encode(codec.from_json(value))))
    assert found == printed
    json.dumps(found, allow_nan=False)
    # the printed value encodes to the same bytes
    assert codec.encode(codec.from_json(printed)) == codec.encode(codec.from_json(value))


RECORD = {
    "type": "record",
    "name": "n.R",
    "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": ["null", "string"], "default": None}],
}


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        (RECORD, {"a": "x"}, "a: 'x' is not int"),
        (RECORD, {"a": 2**31}, "a: 2147483648 is not int"),
        (RECORD, {}, "the value: n.R wants the field 'a'"),
        (RECORD, {"a": 1, "c": 2}, "the value: n.R has no field 'c'"),
        (RECORD, [], "the value: \\[\\] is not an object of n.R"),
        (RECORD, {"a": 1, "b": 5}, "b: 5 is not string"),
        ({"type": "array", "items": "int"}, [1, None], r"\[1\]: None is not int"),
        ("boolean", 1, "1 is not boolean"),
        ("int", True, "True is not int"),
        ("bytes", "?", "is not base64"),
        ({"type": "fixed", "name": "F", "size": 3}, "AAE=", "is not 3 bytes in base64"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "C", "'C' is not one of A, B"),
        ({"type": "int", "logicalType": "date"}, "soon", "'soon' is not date"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1}, "x", "'x' is not decimal"),
        (["int", "string"], [], r"\[\] is not int; the value: \[\] is not string"),
    ],
)
def test_json_that_does_not_fit(schema: Any, value: Any, said: str) -> None:
    with pytest.raises(CannotEncode, match=said):
        AvroCodec(whole_schema(schema, [])).from_json(value)


def test_strategies(client: RegistryClient) -> None:
    schema = json.dumps(RECORD)
    for strategy, is_key, subject in [
        ("topic", False, "t-value"),
        ("topic", True, "t-key"),
        ("record", False, "n.R"),
        ("topic-record", False, "t-n.R"),
    ]:
        made = Serializer(client, "t", schema=schema, strategy=strategy, is_key=is_key)
        assert made.subject == subject
        assert Serializer(client, "t", strategy=strategy, record="n.R", is_key=is_key).schema.id == made.schema.id
    titled = Serializer(client, "t", schema='{"type":"object","title":"T"}', schema_type="JSON", strategy="record")
    assert titled.subject == "T"
    wrongs: list[dict[str, Any]] = [
        {"strategy": "record"}, {"topic": None}, {"strategy": "other"}, {"ids": "nowhere"}, {"topic": "unknown"}
    ]  # fmt: skip
    for wrong in wrongs:
        with pytest.raises(SchemaDataError):
            Serializer(client, **{"topic": "t", **wrong})


def test_evolution_and_what_cannot_be_read(client: RegistryClient) -> None:
    first = Serializer(client, "evolving", schema=json.dumps(RECORD))
    newer = {**RECORD, "fields": [*RECORD["fields"], {"name": "c", "type": "int", "default": 9}]}
    second = Serializer(client, "evolving", schema=json.dumps(newer))
    reader = Deserializer(client, reader=second.schema)
    assert reader.decode(first.encode({"a": 1})) == {"a": 1, "b": None, "c": 9}
    assert reader.decode(second.encode({"a": 1, "c": 2})) == {"a": 1, "b": None, "c": 2}
    assert Deserializer(client, reader=first.schema).decode(second.encode({"a": 1, "c": 2})) == {"a": 1, "b": None}
    assert (first.encode(None), reader.decode(None)) == (None, None)
    for data, said in [
        (framing.id_prefix(99_999), "no schema with the id 99999 is registered"),
        ((first.encode({"a": 1}) or b"") + b"x", "1 bytes follow the Avro data"),
        (framing.id_prefix(first.schema.id or 0), "the data does not fit the Avro schema"),
        (Serializer(client, "j", schema="{}", schema_type="JSON").encode(1), "the schema is JSON, and the reader's is AVRO"),
    ]:
        for _ in range(2):
            with pytest.raises(SchemaDataError, match=said):
                reader.decode(data)
    with pytest.raises(SchemaDataError, match=f"no schema with the guid {GUID}"):
        reader.decode(b"", [(framing.VALUE_HEADER, framing.guid_header(GUID))])


@pytest.mark.parametrize(
    ("written", "read"),
    [(["null", "string"], "string"), ({"type": "enum", "symbols": ["A", "B"]}, {"type": "enum", "symbols": ["A"]})],
)
def test_avro_data_that_the_readers_schema_cannot_hold_is_refused(written: Any, read: Any) -> None:
    ours, theirs = (
        RegisteredSchema(None, None, "AVRO", json.dumps(each | {"name": "E"} if isinstance(each, dict) else each))
        for each in (written, read)
    )
    data = codec_of(ours).encode("B" if isinstance(written, dict) else None)
    with pytest.raises(CannotDecode, match="the data does not fit the Avro schema"):
        codec_of(ours, theirs).decode(data)


DAY = {"type": "int", "logicalType": "date"}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
INNER = {
    "type": "record",
    "name": "In",
    "fields": [{"name": "q", "type": "bytes", "default": "\u00fe"}, {"name": "d", "type": DAY}],
}


@pytest.mark.parametrize(
    ("kind", "default", "value"),
    [
        ("bytes", "\u00ff\u0000", b"\xff\0"),
        ({"type": "fixed", "name": "F", "size": 1}, "\u00ff", b"\xff"),
        ("double", 1, 1.0),
        (DAY, 5, datetime.date(1970, 1, 6)),
        (
            [{"type": "long", "logicalType": "timestamp-millis"}, "null"],
            1500,
            datetime.datetime(1970, 1, 1, 0, 0, 1, 500_000, datetime.UTC),
        ),
        (DECIMAL, "\u0001\u0002", Decimal("2.58")),
        ({"type": "array", "items": DAY}, [1], [datetime.date(1970, 1, 2)]),
        ({"type": "map", "values": "bytes"}, {"k": "\u00ff"}, {"k": b"\xff"}),
        (INNER, {"d": 0}, {"q": b"\xfe", "d": datetime.date(1970, 1, 1)}),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "B"),
        (["null", "bytes"], None, None),
        (["null", "int"], 7, 7),
    ],
)
def test_avro_defaults_are_values(kind: Any, default: Any, value: Any) -> None:
    old, new = (
        RegisteredSchema(
            None, None, "AVRO", json.dumps({"type": "record", "name": "R", "fields": [{"name": "x", "type": "int"}, *more]})
        )
        for more in ([], [{"name": "y", "type": kind, "default": default}])
    )
    assert codec_of(old, new).decode(codec_of(old).encode({"x": 1})) == {"x": 1, "y": value}


def test_avro_containers_have_no_namespace() -> None:
    fields = [
        {"name": "a", "type": {"type": "array", "items": "In"}},
        {"name": "m", "type": {"type": "map", "values": ["null", "x.In"]}},
    ]
    inner = {"name": "in", "type": {"type": "enum", "name": "In", "symbols": ["A"]}}
    schema = {"type": "record", "name": "R", "namespace": "x", "fields": [inner, *fields]}
    codec = codec_of(RegisteredSchema(None, None, "AVRO", json.dumps(schema)))
    value = {"in": "A", "a": ["A"], "m": {"k": None}}
    assert codec.decode(codec.encode(value)) == value


def test_protobuf_evolves_by_number(client: RegistryClient) -> None:
    old, new = (f'syntax = "proto3"; message M {{ int32 {name} = 1; }} message N {{ string s = 1; }}' for name in ("a", "b"))
    client.put("config", "p-value", body={"compatibility": "NONE"})
    writer = Serializer(client, "p", schema=old, schema_type="PROTOBUF")
    reader = Serializer(client, "p", schema=new, schema_type="PROTOBUF").schema
    assert Deserializer(client, reader=reader).decode_json(writer.encode_json({"a": 3})) == {"b": 3}
    with pytest.raises(SchemaDataError, match="has no message X; there are M, N"):
        Serializer(client, "p", message="X")
    for value, said in [({"c": 1}, "has no field named"), ([], "does not fit M"), ({"a": "x"}, "does not fit M")]:
        with pytest.raises(CannotEncode, match=said):
            Serializer(client, "p").encode_json(value)


def test_confluents_decimal_and_options(client: RegistryClient) -> None:
    text = """syntax = "proto3"; import "confluent/meta.proto"; import "confluent/type/decimal.proto"; import "google/protobuf/any.proto";
    message M { confluent.type.Decimal price = 1 [(confluent.field_meta).doc = "in euros"]; google.protobuf.Any any = 2; }"""
    made = Serializer(client, "d", schema=text, schema_type="PROTOBUF")
    value = {"price": {"value": "AQ==", "precision": 5, "scale": 2}}
    assert Deserializer(client).decode_json(made.encode_json(value)) == value


def test_hostile_json_schemas_ask_nobody(client: RegistryClient) -> None:
    client.put("config", "h-value", body={"compatibility": "NONE"})
    with pytest.raises(Exception, match=r"(?i)ref|cannot be used"):
        Serializer(client, "h", schema='{"$ref":"http://127.0.0.1:9/x.json"}', schema_type="JSON")
    slow = Serializer(client, "h", schema='{"pattern":"^(a+)+$(?=b)"}', schema_type="JSON")
    with pytest.raises(CannotEncode):
        slow.encode("a" * 50_000 + "!")


def test_a_schema_that_comes_late_is_found(client: RegistryClient, monkeypatch: pytest.MonkeyPatch) -> None:
    last = Serializer(client, subject="late-1", schema='{"type":"fixed","name":"Late1","size":1}').schema.id or 0
    reader = Deserializer(client)
    data = framing.id_prefix(last + 1) + b"x"
    for _ in range(2):
        with pytest.raises(SchemaDataError, match="no schema with the id"):
            reader.decode(data)
    made = Serializer(client, subject="late-2", schema='{"type":"fixed","name":"Late2","size":1}').schema.id
    assert made == last + 1
    with pytest.raises(SchemaDataError, match="no schema with the id"):
        reader.decode(data)  # the reader asked a moment ago; it asks again after RETRY_S
    now_s = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now_s + serializer.RETRY_S)
    assert reader.decode(data) == b"x"


def test_what_peers_make_grow_is_limited(client: RegistryClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_CACHED_SCHEMAS", 3)
    monkeypatch.setattr(limits, "MAX_REFERENCE_DEPTH", 4)
    references: list[dict[str, Any]] = []
    made: list[Serializer] = []
    for number in range(6):
        fields = [{"name": "inner", "type": each["name"]} for each in references]
        text = json.dumps({"type": "record", "name": f"Deep{number}", "fields": fields})
        client.post("subjects", f"deep-{number}", "versions", body={"schema": text, "references": references})
        if number < 5:
            made.append(Serializer(client, subject=f"deep-{number}"))
        references = [{"name": f"Deep{number}", "subject": f"deep-{number}", "version": 1}]
    with pytest.raises(SchemaDataError, match="references are deeper than 4"):
        Serializer(client, subject="deep-5")
    reader = Deserializer(client)
    for each in made:
        reader.decode(framing.id_prefix(each.schema.id or 0))
    for number in range(1_000_000, 1_000_006):
        with pytest.raises(SchemaDataError):
            reader.decode(framing.id_prefix(number))
    assert [len(kept) for kept in (reader._codecs, reader._failed, reader.schemas._known)] == [3, 3, 3]
