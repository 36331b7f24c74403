"""Topics with registered schemas: several versions, all three formats, ids in headers, and records that do not fit."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from barnabas.columnar.decode import HEADER_TYPE
from barnabas.schemas.framing import VALUE_HEADER
from barnabas.schemas.registry_client import RegistryClient
from barnabas.schemas.serializer import Serializer
from barnabas.tables import registered_format
from barnabas.tables.column_types import mark_of
from barnabas.tables.declared import columns_of
from barnabas.tables.errors import TableError
from barnabas.tables.formats import ColumnFormat, Decoded
from barnabas.tables.registered_format import RegisteredFormat
from tests.tables.formats.test_json_kernels import binary, reasons

AT = datetime.datetime(2026, 1, 2, 3, 4, 5, 6000, datetime.UTC)


def avro(fields: list[Any]) -> str:
    return json.dumps({"type": "record", "name": "Order", "namespace": "shop", "fields": fields})


OLD = [
    {"name": "id", "type": "int"},
    {"name": "gone", "type": ["null", "string"]},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}},
]
NEW = [
    {"name": "id", "type": "long"},
    {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "default": None},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}},
    {"name": "kind", "type": "string", "default": "web"},
]


def value_format(topic: str, registry_url: str, name: str = "auto") -> RegisteredFormat:
    made = columns_of(topic, format=name, registry=registry_url).value
    assert isinstance(made, RegisteredFormat)
    return made


def rows(format_: ColumnFormat, payloads: list[bytes | None], headers: Any = None) -> tuple[list[Any], list[Any]]:
    names = [field.name for field in format_.fields]
    found = format_.decode(binary(payloads), headers, names)
    return _rows(found, names), reasons(found)


def _rows(found: Decoded, names: list[str]) -> list[Any]:
    made: Any = pa.Table.from_arrays(list(found.columns), names)
    listed: list[Any] = made.to_pylist(maps_as_pydicts="strict")
    return listed


def test_versions_of_avro_resolve_to_the_newest(client: RegistryClient, registry_url: str) -> None:
    old = Serializer(client, "versions", schema=avro(OLD))
    new = Serializer(client, "versions", schema=avro(NEW))
    format_ = value_format("versions", registry_url)
    payloads = [
        old.encode({"id": 1, "gone": "x", "price": Decimal("1.50")}),
        new.encode({"id": 2**40, "at": AT, "price": Decimal("-0.01"), "kind": "shop"}),
        None,
        old.encode({"id": 3, "gone": None, "price": Decimal(0)}),
    ]
    nothing = dict.fromkeys(["id", "at", "price", "kind"])
    assert rows(format_, payloads) == (
        [
            {"id": 1, "at": None, "price": Decimal("1.50"), "kind": "web"},
            {"id": 2**40, "at": AT, "price": Decimal("-0.01"), "kind": "shop"},
            nothing,
            {"id": 3, "at": None, "price": Decimal(0), "kind": "web"},
        ],
        [],
    )
    assert rows(format_, [None, None]) == ([nothing, nothing], [])


def test_records_that_do_not_fit_have_reasons(client: RegistryClient, registry_url: str) -> None:
    avro_values = Serializer(client, "poison", schema=avro(NEW))
    other = Serializer(client, "poison-other", schema='{"type": "string"}', schema_type="JSON").encode("x")
    good = avro_values.encode({"id": 1, "at": AT, "price": Decimal(1), "kind": "é"})
    assert good is not None
    found, why = rows(
        value_format("poison", registry_url),
        [b"", b"\0\0\0\0\0x", b"\0\0\1\0\0x", b"{}", other, good[:-1], good + b"x", good[:-2] + b"\xff\xff", good],
    )
    said = [
        "no id", "no id", "no schema with the id 65536", "no id", "the schema is JSON, and the reader's is AVRO", None, "1 bytes follow",
        "does not fit", None,
    ]  # fmt: skip
    assert [row["id"] for row in found] == [None] * 5 + [why[5] and None, None, None, 1]
    for reason, part in zip(why, said, strict=True):
        assert part is None or part in reason
    assert why[8] is None


def test_many_ids_are_decoded_in_few_groups(client: RegistryClient, registry_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registered_format, "MOST_IDS", 3)
    old = Serializer(client, "many-ids", schema=avro(OLD))
    new = Serializer(client, "many-ids", schema=avro(NEW))
    good = [
        old.encode({"id": 1, "gone": None, "price": Decimal(1)}),
        new.encode({"id": 2, "at": None, "price": Decimal(2), "kind": ""}),
    ]
    unknown = [bytes([0, 0, 9, 0, number]) + b"x" for number in range(10)]
    calls: list[int] = []
    format_ = value_format("many-ids", registry_url)
    one_by_one = format_._decode_each

    def counted(payloads: Any, headers: Any, fields: Any) -> Decoded:
        calls.append(len(payloads))
        return one_by_one(payloads, headers, fields)

    monkeypatch.setattr(format_, "_decode_each", counted)
    found, why = rows(format_, [*unknown[:5], good[0], good[1], good[0], *unknown[5:], good[1]])
    assert [row["id"] for row in found] == [None] * 5 + [1, 2, 1] + [None] * 5 + [2]
    assert [reason is None for reason in why] == [row["id"] is not None for row in found]
    assert calls == [10]


def test_ids_in_headers(client: RegistryClient, registry_url: str) -> None:
    in_payload = Serializer(client, "headers", schema=avro(NEW))
    in_headers = Serializer(client, "headers", schema=avro(NEW), ids="headers")
    value = {"id": 7, "at": None, "price": Decimal(2), "kind": "h"}
    named = [{"key": key, "value": data} for key, data in in_headers.headers]
    headers = pa.array([None, [{"key": "other", "value": b""}, *named], None], HEADER_TYPE)
    payloads = [in_payload.encode(value), in_headers.encode(value), b"raw"]
    format_ = value_format("headers", registry_url)
    assert format_.uses_headers
    found, why = rows(format_, payloads, headers)
    assert (found[0], found[1], found[2]["id"]) == (value, value, None)
    assert "no id of a schema" in why[2]
    assert named[0]["key"] == VALUE_HEADER


JSON_OLD = {"type": "object", "properties": {"id": {"type": "integer"}, "any": {}, "word": {"type": "string"}}}
JSON_NEW = {
    "type": "object",
    "properties": {"id": {"type": "number"}, "any": {}, "tags": {"type": "array", "items": {"type": "string"}}},
}


def test_versions_of_json_schema_resolve_by_name(client: RegistryClient, registry_url: str) -> None:
    client.put("config", "json-value", body={"compatibility": "NONE"})
    old = Serializer(client, "json", schema=json.dumps(JSON_OLD), schema_type="JSON")
    new = Serializer(client, "json", schema=json.dumps(JSON_NEW), schema_type="JSON")
    format_ = value_format("json", registry_url, "json_schema")
    assert [mark_of(field) for field in format_.fields] == ["", "json", ""]
    payloads = [
        old.encode({"id": 1, "any": {"x": [1]}, "word": "w"}),
        None,
        new.encode({"id": 1.5, "any": "text", "tags": ["a"]}),
        (old.encode({}) or b"")[:5] + b'{"id": "x"}',
        b"{}",
    ]
    found, why = rows(format_, payloads)
    assert found == [
        {"id": 1.0, "any": '{"x":[1]}', "tags": None},
        {"id": None, "any": None, "tags": None},
        {"id": 1.5, "any": '"text"', "tags": ["a"]},
        {"id": None, "any": None, "tags": None},
        {"id": None, "any": None, "tags": None},
    ]
    assert why[:3] == [None] * 3
    assert why[3:] == ['id is "x", not double', "it carries no id of a schema"]


PROTO_OLD = 'syntax = "proto3"; package p; message Order { int32 id = 1; string gone = 2; repeated string tags = 3; }'
PROTO_NEW = """syntax = "proto3"; package p;
message Order { int32 number = 1; repeated string tags = 3; Place place = 4; map<string, double> scores = 5;
message Place { string city = 1; } }"""


def test_versions_of_protobuf_resolve_by_number(client: RegistryClient, registry_url: str) -> None:
    client.put("config", "proto-value", body={"compatibility": "NONE"})
    old = Serializer(client, "proto", schema=PROTO_OLD, schema_type="PROTOBUF")
    new = Serializer(client, "proto", schema=PROTO_NEW, schema_type="PROTOBUF")
    payloads = [
        old.encode({"id": 1, "gone": "x", "tags": ["a"]}),
        new.encode({"number": 2, "place": {"city": "Bern"}, "scores": {"a": 0.5}}),
        (new.encode({"number": 3}) or b"") + b"\xff",
        None,
    ]
    found, why = rows(value_format("proto", registry_url, "protobuf"), payloads)
    assert found[:2] == [
        {"number": 1, "tags": ["a"], "place": None, "scores": {}},
        {"number": 2, "tags": [], "place": {"city": "Bern"}, "scores": {"a": 0.5}},
    ]
    assert [row["number"] for row in found[2:]] == [None, None]
    assert "the data is no p.Order" in why[2]


NESTED = [
    {"name": "id", "type": "int"},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
    {"name": "place", "type": ["null", {"type": "record", "name": "Place", "fields": [{"name": "city", "type": "string"}]}]},
]


@pytest.fixture
def subjects(client: RegistryClient) -> list[tuple[str, Any]]:
    """Topics of each format, and a row for each."""
    made: list[tuple[str, Any]] = []
    for topic, schema, kind, row in [
        ("write-flat", avro(NEW), "AVRO", {"id": 5, "at": AT, "price": Decimal("9.99"), "kind": "k"}),
        ("write-nested", avro(NESTED), "AVRO", {"id": 5, "tags": ["a", "b"], "place": {"city": "Bern"}}),
        ("write-json", json.dumps(JSON_NEW), "JSON", {"id": 5.0, "any": '{"x":1}', "tags": ["t"]}),
        ("write-proto", PROTO_NEW, "PROTOBUF", {"number": 5, "tags": ["t"], "place": {"city": "Bern"}, "scores": {"a": 1.0}}),
    ]:
        Serializer(client, topic, schema=schema, schema_type=kind)
        made.append((topic, row))
    return made


def test_rows_are_read_back_as_they_were_written(subjects: list[tuple[str, Any]], registry_url: str) -> None:
    for topic, row in subjects:
        format_ = value_format(topic, registry_url)
        columns = [pa.array([row[field.name]] * 3, field.type) for field in format_.fields]
        batch = pa.RecordBatch.from_arrays(columns, [field.name for field in format_.fields])
        payloads = format_.encode(batch, pa.array([False, True, None]))
        found, why = rows(format_, payloads.to_pylist())
        assert (found[0], found[2], why) == (row, row, []), topic
        assert set(found[1].values()) == {None}
        assert payloads.to_pylist()[1] is None


def test_columns_do_not_depend_on_the_others(subjects: list[tuple[str, Any]], registry_url: str) -> None:
    for topic, row in subjects:
        format_ = value_format(topic, registry_url)
        columns = [pa.array([row[field.name]], field.type) for field in format_.fields]
        payloads = format_.encode(pa.RecordBatch.from_arrays(columns, [field.name for field in format_.fields]))
        for field in format_.fields:
            assert _rows(format_.decode(payloads, None, [field.name]), [field.name]) == [{field.name: row[field.name]}]
        assert format_.decode(payloads, None, []).columns == []


def test_rows_that_the_schema_does_not_take(client: RegistryClient, registry_url: str) -> None:
    Serializer(client, "refused", schema=avro(NEW))
    format_ = value_format("refused", registry_url)
    batch = pa.RecordBatch.from_arrays([pa.array([None], pa.int64())], ["id"])
    with pytest.raises(TableError, match=r"does not fit the (Avro )?schema"):
        format_.encode(batch)
    with pytest.raises(TableError, match="there is no column x to write"):
        format_.encode(pa.record_batch({"x": [1]}))


def test_schemas_without_fields_give_one_column(client: RegistryClient, registry_url: str) -> None:
    serializer = Serializer(client, "single", schema='"long"')
    found, why = rows(value_format("single", registry_url), [serializer.encode(5), None])
    assert (found, why) == ([{"value": 5}, {"value": None}], [])
    keys = Serializer(client, "single", schema='"string"', is_key=True)
    columns = columns_of("single", format="avro", key="registered", registry=registry_url)
    assert columns.schema.names[:2] == ["value", "_key"]
    assert rows(columns.key, [keys.encode("k")])[0] == [{"_key": "k"}]


def test_which_schema_a_format_wants(client: RegistryClient, registry_url: str) -> None:
    Serializer(client, "wanted", schema=avro(NEW))
    with pytest.raises(TableError, match="the format is protobuf, and the newest schema of wanted-value is avro"):
        columns_of("wanted", format="protobuf", registry=registry_url)
    with pytest.raises(
        TableError, match="the format avro needs a schema: no schema is registered under the subject nothing-value"
    ):
        columns_of("nothing", format="avro", registry=registry_url)
    assert columns_of("nothing", format="auto", registry=registry_url).schema.names[0] == "value"
    with pytest.raises(TableError, match="no schema is registered under the subject wanted-key"):
        columns_of("wanted", format="avro", key="registered", registry=registry_url)
    node = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
    Serializer(client, "recursive", schema=json.dumps(node))
    with pytest.raises(TableError, match="gives no columns: the record Node contains itself"):
        columns_of("recursive", format="auto", registry=registry_url)
