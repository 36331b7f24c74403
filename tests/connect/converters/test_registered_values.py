"""Decimals, bytes, dates and times by the converters with schemas in JSON Schema and Protobuf, in Confluent's forms."""

from __future__ import annotations

import base64
import datetime
import json
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from zlib import crc32

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.json_format import MessageToDict

from barnabas.connect.converters import json_columns
from barnabas.connect.converters.registered_json import json_schema_text, takes
from barnabas.connect.converters.registry import converter
from barnabas.connect.errors import ConnectError
from barnabas.registry.formats.protobuf import builtins
from barnabas.schemas import protobuf_codec
from barnabas.schemas.codecs import codec_of
from barnabas.schemas.registered import RegisteredSchemas
from barnabas.schemas.registry_client import RegistryClient
from barnabas.testing import Broker

JSON, PROTOBUF = "io.confluent.connect.json.JsonSchemaConverter", "io.confluent.connect.protobuf.ProtobufConverter"
LOGICAL = "org.apache.kafka.connect.data."
NOON = datetime.datetime(2024, 2, 29, 12, 0, 0, 123000, datetime.UTC)
DAY, TIME = datetime.date(1969, 12, 31), datetime.time(23, 59, 59, 999000)
INNER: Any = pa.struct([("price", pa.decimal128(10, 2)), ("day", pa.date32())])
KIND: Any = pa.struct(
    [
        pa.field("id", pa.int32(), nullable=False), ("n", pa.decimal128(10, 2)), ("wide", pa.decimal256(60, 0)), ("data", pa.binary()),
        ("day", pa.date32()), ("time", pa.time32("ms")), ("at", pa.timestamp("ms", "UTC")), ("inner", INNER),
        ("all", pa.list_(pa.decimal128(38, 4))), ("each", pa.list_(INNER)), ("map", pa.map_(pa.string(), pa.decimal128(9, 1))),
    ]
)  # fmt: skip
FULL = {
    "id": 1, "n": Decimal("-12345678.90"), "wide": Decimal(10) ** 59, "data": b"\xff\0x", "day": DAY, "time": TIME, "at": NOON,
    "inner": {"price": Decimal("0.01"), "day": DAY}, "all": [Decimal("-1.0000"), Decimal(0).quantize(Decimal("1.0000"))],
    "each": [{"price": Decimal("99.99"), "day": None}, {"price": None, "day": DAY}], "map": [("a", Decimal("0.5")), ("b", Decimal("-0.5"))],
}  # fmt: skip
COLUMN: Any = pa.array([FULL, None, {"id": 2, "all": [], "each": []}], KIND)


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    with Broker() as broker:
        yield broker.schema_registry_url


def made(name: str, registry: str, **config: str) -> Any:
    given = {"schema.registry.url": registry, **{key.replace("_", "."): value for key, value in config.items()}}
    return converter(
        {"value.converter": name, **{f"value.converter.{key}": each for key, each in given.items()}}, {}, is_key=False
    )


def read(its: Any, payloads: Any) -> list[Any]:
    found = its.decode(payloads)
    assert not found.bad
    return list(found.column.to_pylist())


@pytest.mark.parametrize("form", ["BASE64", "numeric"])
@pytest.mark.parametrize("repeats", [1, 40])
def test_json_schema_gives_back_what_was_written(registry: str, form: str, repeats: int) -> None:
    its = made(JSON, registry, decimal_format=form)
    column = pa.concat_arrays([COLUMN] * repeats)
    found = its.decode(its.encode(column, f"all-{form}-{repeats}").slice(1))
    assert not found.bad
    assert found.column.to_pylist() == column.to_pylist()[1:]
    kinds = {each.name: each.type for each in found.column.type}
    assert [kinds[name] for name in ("id", "n", "wide", "data", "day", "time", "at")] == [
        each.type for each in KIND if each.name in ("id", "n", "wide", "data", "day", "time", "at")
    ]
    assert kinds["all"].value_type == pa.decimal128(38, 4)
    assert kinds["map"].item_type == pa.decimal128(9, 1)


def test_protobuf_gives_back_what_was_written(registry: str) -> None:
    its = made(PROTOBUF, registry)
    found = its.decode(its.encode(COLUMN, "protobuf-all").slice(1))
    assert not found.bad
    first, second = found.column.to_pylist()
    assert (first, second["id"], second["n"], second["inner"]) == (None, 2, None, None)
    found = its.decode(its.encode(COLUMN, "protobuf-all"))
    kinds = {each.name: each.type for each in found.column.type}
    assert [kinds[name] for name in ("n", "wide", "data", "day", "time")] == [
        pa.decimal128(10, 2), pa.decimal256(60, 0), pa.binary(), pa.date32(), pa.time64("us"),
    ]  # fmt: skip
    (row, *_) = found.column.to_pylist()
    assert {**row, "map": sorted(row["map"])} == FULL  # maps of Protobuf have no order


def test_the_json_schema_is_that_of_confluent() -> None:
    found = json.loads(json_schema_text(KIND, "x"))["properties"]
    title = {"title": f"{LOGICAL}Decimal", "connect.version": 1, "connect.type": "bytes"}
    decimal = {"type": "number", **title, "connect.parameters": {"scale": "2", "connect.decimal.precision": "10"}}
    assert found["n"] == {"oneOf": [{"type": "null"}, decimal]}
    assert found["data"] == {"oneOf": [{"type": "null"}, {"type": "string", "connect.type": "bytes"}]}
    assert found["id"] == {"type": "integer", "connect.type": "int32"}
    assert found["map"]["connect.type"] == "map"
    assert found["all"]["items"]["oneOf"][1]["connect.parameters"] == {"scale": "4"}


@pytest.mark.parametrize(("form", "default"), [("BASE64", "AfQ="), ("NUMERIC", 5)])
def test_defaults_of_decimals_in_json_schema(form: str, default: Any) -> None:
    kind = pa.struct([pa.field("n", pa.decimal128(5, 2), nullable=False, metadata={"connect.default": '"AfQ="'})])
    found = json.loads(json_schema_text(kind, "x", numeric=form == "NUMERIC"))
    assert (found["properties"]["n"]["default"], found["properties"]["n"]["type"]) == (default, "number")


@pytest.mark.parametrize(("form", "expected"), [("BASE64", base64.b64encode(b"\0\xfa").decode()), ("NUMERIC", 2.5)])
def test_confluents_client_reads_json_schema(registry: str, form: str, expected: Any) -> None:
    its = made(JSON, registry, decimal_format=form)
    column: Any = pa.array([{"n": Decimal("2.50"), "b": b"\1"}], pa.struct([("n", pa.decimal128(5, 2)), ("b", pa.binary())]))
    (payload,) = its.encode(column, f"client-{form}").to_pylist()
    # by Confluent's schema a decimal is a number although it may be written as a text: only numbers pass the check
    checks = {"validate": form == "NUMERIC"}
    with SchemaRegistryClient({"url": registry}) as client:
        deserializer = JSONDeserializer(None, schema_registry_client=client, conf=checks)
        found = deserializer(payload, SerializationContext("x", MessageField.VALUE))
    assert found == {"n": expected, "b": "AQ=="}


def test_confluents_client_reads_protobuf(registry: str) -> None:
    its = made(PROTOBUF, registry)
    (payload, *_) = its.encode(COLUMN, "client-protobuf").to_pylist()
    with RegistryClient(registry, {}) as own:
        schema = RegisteredSchemas(own).latest("client-protobuf-value")
    codec: Any = codec_of(schema)
    message = type(codec.from_json({}))
    with SchemaRegistryClient({"url": registry}) as client:
        deserializer = ProtobufDeserializer(message, {"use.deprecated.format": False}, client)
        found = MessageToDict(deserializer(payload, SerializationContext("x", MessageField.VALUE)), descriptor_pool=codec.pool)
        text = client.get_latest_version("client-protobuf-value").schema.schema_str
    assert found["n"] == {
        "value": base64.b64encode((-1234567890).to_bytes(4, "big", signed=True)).decode(),
        "precision": 10,
        "scale": 2,
    }
    assert found["day"] == {"year": 1969, "month": 12, "day": 31}
    assert found["time"] == {"hours": 23, "minutes": 59, "seconds": 59, "nanos": 999000000}
    assert found["at"] == "2024-02-29T12:00:00.123Z"
    assert 'import "confluent/type/decimal.proto";' in text


CONFLUENT = {
    "type": "object", "title": "a.b.Row",
    "properties": {
        "d": {"connect.index": 1, "oneOf": [{"type": "null"}, {
            "type": "number", "title": f"{LOGICAL}Decimal", "connect.type": "bytes", "connect.version": 1,
            "connect.parameters": {"scale": "2"}}]},
        "b": {"type": "string", "connect.type": "bytes", "connect.index": 2},
        "i": {"oneOf": [{"type": "null"}, {"type": "integer", "connect.type": "int16"}], "connect.index": 0},
        "t": {"oneOf": [{"type": "null"}, {"type": "integer", "connect.type": "int64", "title": "io.debezium.time.MicroTimestamp",
                                           "connect.version": 1}], "connect.index": 3},
    },
}  # fmt: skip


def test_records_of_confluents_converter_are_read_and_those_that_do_not_fit_are_dead_letters(registry: str) -> None:
    with SchemaRegistryClient({"url": registry}) as client:
        schema_id = client.register_schema("theirs-value", Schema(json.dumps(CONFLUENT), "JSON"))
    texts = [
        '{"i":7,"d":"AfQ=","b":"/w==","t":5}', '{"i":null,"d":5.1,"b":"","t":null}', '{"i":70000,"b":""}', '{"d":"%","b":""}',
        '{"d":1.234,"b":""}', '{"d":true,"b":""}', '{"b":"%"}', '{"d":1e400000}', '{"d":123456789012345678901234567890123456789}',
    ]  # fmt: skip
    payloads = [b"\0" + schema_id.to_bytes(4, "big") + each.encode() for each in texts]
    found = made(JSON, registry).decode(pa.array(payloads, pa.binary()))
    assert sorted(found.bad) == [2, 3, 4, 5, 6, 7, 8]
    assert found.column.to_pylist()[:2] == [
        {"d": Decimal("5.00"), "b": b"\xff", "i": 7, "t": 5}, {"d": Decimal("5.10"), "b": b"", "i": None, "t": None},
    ]  # fmt: skip
    kinds = {each.name: each for each in found.column.type}
    assert (kinds["i"].type, kinds["d"].type) == (pa.int16(), pa.decimal128(38, 2))
    assert kinds["t"].metadata == {b"connect.name": b"io.debezium.time.MicroTimestamp", b"connect.version": b"1"}


def test_a_schema_of_confluents_converter_is_written_too(registry: str) -> None:
    with SchemaRegistryClient({"url": registry}) as client:
        client.register_schema("latest-value", Schema(json.dumps(CONFLUENT), "JSON"))
    its = made(JSON, registry, use_latest_version="true")
    column: Any = pa.array(
        [{"b": b"\xff", "d": Decimal("5.00"), "i": 3}, {"b": b"", "d": None, "i": None}],
        pa.struct([pa.field("b", pa.binary(), nullable=False), ("d", pa.decimal128(10, 2)), ("i", pa.int16())]),
    )
    payloads = its.encode(column, "latest")
    assert [each[5:] for each in payloads.to_pylist()] == [b'{"b":"/w==","d":"AfQ=","i":3}', b'{"b":"","d":null,"i":null}']
    assert [{name: each[name] for name in ("b", "d", "i")} for each in read(its, payloads)] == column.to_pylist()


DECIMAL = {"type": "number", "connect.type": "bytes", "title": f"{LOGICAL}Decimal"}  # of the scale 0


def schema_with(**more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": {"type": "integer"}}, **more}


@pytest.mark.parametrize(
    ("schema", "kind", "nullable"),
    [
        (schema_with(required=["y"]), pa.int64(), False),
        (schema_with(), pa.int64(), True),
        (schema_with(), pa.string(), False),
        (schema_with(), pa.float64(), False),
        (schema_with(), pa.date32(), False),
        (schema_with(), pa.decimal128(5, 0), False),
        (schema_with(properties={"x": {"type": "integer", "minimum": 0}}), pa.int64(), False),
        (schema_with(properties={"x": {"type": "integer", "connect.type": "int16"}}), pa.int32(), False),
        (schema_with(properties={"x": {"type": "string", "enum": ["a"]}}), pa.string(), False),
        (
            schema_with(properties={"x": {"type": "number", "connect.type": "bytes", "title": f"{LOGICAL}Decimal"}}),
            pa.decimal128(5, 2),
            False,
        ),
        (schema_with(properties={"x": {"type": "string"}}), pa.binary(), False),
        (schema_with(properties={"x": {"$ref": "#/definitions/x"}}), pa.int64(), False),
        (schema_with(properties={"x": True}), pa.int64(), False),
        (schema_with(properties={"y": {"type": "integer"}}), pa.int64(), False),
        (schema_with(properties={"x": {"oneOf": [{"type": "null"}, {"type": "integer"}], "not": {}}}), pa.int64(), True),
        (schema_with(allOf=[]), pa.int64(), False),
        (True, pa.int64(), False),
    ],
)
def test_schemas_that_demand_more_than_types_are_written_row_by_row(schema: Any, kind: Any, nullable: bool) -> None:
    assert not takes(schema, pa.field("value", pa.struct([pa.field("x", kind, nullable)]), nullable=False))


def test_messages_that_do_not_fit_are_dead_letters(registry: str) -> None:
    text = (
        'syntax = "proto3"; import "confluent/type/decimal.proto"; import "google/type/date.proto"; import "google/type/timeofday.proto";'
        "message M { confluent.type.Decimal d = 1; google.type.Date day = 2; google.type.TimeOfDay time = 3; }"
    )
    with RegistryClient(registry, {}) as own:
        schema = RegisteredSchemas(own).register("messages-value", text, "PROTOBUF")
    codec: Any = codec_of(schema)
    values: list[dict[str, Any]] = [
        {"d": {"value": "Bw=="}, "day": {"year": 2024, "month": 2, "day": 29}, "time": {"hours": 1}}, {"d": {"value": "Bw==", "scale": 1}},
        {"day": {"year": 2023, "month": 2, "day": 29}}, {"time": {"hours": 24}}, {"d": {"value": "A" * 400}},
        {"d": {"value": "Bw==", "scale": 2147483647}}, {"d": {"value": "Bw==", "scale": -1}},
    ]  # fmt: skip
    assert schema.id is not None
    payloads = [b"\0" + schema.id.to_bytes(4, "big") + b"\0" + codec.encode(codec.from_json(each)) for each in values]
    found = made(PROTOBUF, registry).decode(pa.array(payloads, pa.binary()))
    assert sorted(found.bad) == [1, 2, 3, 4, 5]
    rows = found.column.to_pylist()
    assert rows[0] == {"d": Decimal(7), "day": datetime.date(2024, 2, 29), "time": datetime.time(1)}
    assert rows[6]["d"] == Decimal(70)


def test_a_required_field_that_is_null_is_refused(registry: str) -> None:
    column: Any = pa.array([{"id": None}], pa.struct([pa.field("id", pa.int32(), nullable=False)]))
    with pytest.raises(ConnectError, match="the required field id is null"):
        made(JSON, registry).encode(column, "required")


def test_an_unknown_form_of_decimals_is_refused(registry: str) -> None:
    with pytest.raises(ConnectError, match=r"Invalid value TEXT for configuration decimal\.format"):
        made(JSON, registry, decimal_format="TEXT")


def test_payloads_are_those_of_the_way_row_by_row(registry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind: Any = pa.struct(
        [
            ("t", pa.string()), ("f", pa.float64()), ("i", pa.int64()), ("s", pa.bool_()), ("l", pa.list_(pa.string())),
            ("m", pa.map_(pa.string(), pa.int64())), ("r", pa.struct([("x", pa.string()), ("at", pa.timestamp("us", "UTC"))])),
        ]
    )  # fmt: skip
    rows = [
        {
            "t": f'é"\\\n\x01\x7f{n}', "f": n / 3, "i": -n, "s": n % 2 == 0, "l": ["a", None] if n % 3 else None,
            "m": [("k", n)] if n % 5 else [], "r": {"x": None, "at": NOON} if n % 4 else None,
        }
        for n in range(100)
    ]  # fmt: skip
    column: Any = pa.array([*rows, None], kind)
    own, other = made(JSON, registry), made(JSON, registry)
    monkeypatch.setattr(type(other), "is_by_columns", lambda self, *given: self is own)
    assert own.encode(column, "same").to_pylist() == other.encode(column, "same").to_pylist()
    assert len(column) > json_columns.FEW_ROWS


def test_a_subject_of_schemas_without_annotations_takes_those_with_them(registry: str) -> None:
    """As version 0.2.0 has registered them."""
    column: Any = pa.array([{"id": 1, "s": None}], pa.struct([pa.field("id", pa.int32(), nullable=False), ("s", pa.string())]))
    before = {
        "$schema": "http://json-schema.org/draft-07/schema#", "title": "ConnectDefault", "type": "object",
        "properties": {"id": {"type": "integer"}, "s": {"type": ["null", "string"]}}, "additionalProperties": False, "required": ["id"],
    }  # fmt: skip
    with SchemaRegistryClient({"url": registry}) as client:
        client.register_schema("annotated-value", Schema(json.dumps(before), "JSON"))
    its = made(JSON, registry)
    assert read(its, its.encode(column, "annotated")) == [{"id": 1, "s": None}]


@pytest.mark.parametrize("name", ["date", "timeofday"])
def test_dates_of_protobuf_need_no_package(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    path = f"google/type/{name}.proto"
    installed, known = builtins.builtin_file.__wrapped__(path), protobuf_codec._known_file(path)

    def missing(module: str) -> Any:
        raise ModuleNotFoundError(module)

    monkeypatch.setattr(builtins, "import_module", missing)
    monkeypatch.setattr(protobuf_codec, "import_module", missing)
    for before, found in (
        (installed, builtins.builtin_file.__wrapped__(path)),
        (known, protobuf_codec._known_file(path)),
    ):
        assert before is not None
        assert found is not None
        assert found.package == before.package
        fields, others = ([(one.name, one.number, one.type) for one in file.message_type[0].field] for file in (before, found))
        assert (found.message_type[0].name, others) == (before.message_type[0].name, fields)


@pytest.mark.parametrize(
    ("demand", "kind", "value", "expected"),
    [
        ({"type": "number", "minimum": -9}, pa.decimal128(38, 2), Decimal("2.50"), b'{"x":2.5}'),
        ({"type": "number", "minimum": -9}, pa.decimal128(38, 2), Decimal("12345678901234567890.12"), "has no exact form"),
        ({"type": "integer", "minimum": -9}, pa.decimal128(38, 2), Decimal("2.00"), b'{"x":2}'),
        ({"type": "integer", "minimum": -9}, pa.decimal128(38, 2), Decimal("2.50"), "has no exact form"),
        ({"type": "integer", "minimum": -9}, pa.decimal128(38, 0), Decimal(2**80), "has no exact form"),
        ({"type": "number", "minimum": 3}, pa.decimal128(38, 2), Decimal("2.50"), "less than the minimum"),
        ({"type": "string", "minLength": 1}, pa.binary(), b"\xff", b'{"x":"/w=="}'),
        ({"type": "string", "minLength": 1}, pa.binary(), None, b"{}"),
    ],
)
def test_a_schema_that_demands_more_gets_exact_values_or_none(
    registry: str, demand: dict[str, Any], kind: Any, value: Any, expected: bytes | str
) -> None:
    subject = f"demand-{crc32(f'{demand} {value}'.encode())}"
    with SchemaRegistryClient({"url": registry}) as client:
        client.register_schema(f"{subject}-value", Schema(json.dumps(schema_with(properties={"x": demand})), "JSON"))
    its = made(JSON, registry, use_latest_version="true")
    column: Any = pa.array([{"x": value, "left out": 1}], pa.struct([("x", kind), ("left out", pa.int8())]))
    if isinstance(expected, str):
        with pytest.raises(ConnectError, match=expected):
            its.encode(column, subject)
    else:
        (payload,) = its.encode(column, subject).to_pylist()
        assert payload[5:] == expected


def test_dates_go_along_with_what_a_schema_demands(registry: str) -> None:
    properties = {"n": {"type": "number", "minimum": 0}, "b": {"type": "string"}, "day": {"type": "integer"}}
    with SchemaRegistryClient({"url": registry}) as client:
        client.register_schema("mixed-value", Schema(json.dumps({"type": "object", "properties": properties}), "JSON"))
    column: Any = pa.array(
        [{"n": Decimal("0.5"), "b": b"\0", "day": DAY}],
        pa.struct([("n", pa.decimal128(5, 1)), ("b", pa.binary()), ("day", pa.date32())]),
    )
    (payload,) = made(JSON, registry, use_latest_version="true").encode(column, "mixed").to_pylist()
    assert payload[5:] == b'{"n":0.5,"b":"AA==","day":-1}'


@pytest.mark.parametrize("numeric", [True, False])
def test_own_schemas_are_written_by_columns(numeric: bool) -> None:
    text = json.loads(json_schema_text(KIND, "x", numeric=numeric))
    assert takes(text, pa.field("value", KIND, nullable=False))


def test_numbers_that_json_lacks_have_their_names(registry: str) -> None:
    its = made(JSON, registry)
    payloads = its.encode(pa.array([{"f": math.inf}, {"f": -math.inf}, {"f": 0.5}]), "infinite")
    assert [each[5:] for each in payloads.to_pylist()] == [b'{"f":"Infinity"}', b'{"f":"-Infinity"}', b'{"f":0.5}']
    assert read(its, payloads) == [{"f": math.inf}, {"f": -math.inf}, {"f": 0.5}]


@pytest.mark.parametrize(
    "parameters", [{"scale": "1000000000000"}, {"scale": "x"}, {"connect.decimal.precision": "-1"}, {"scale": None}, 7]
)
def test_values_of_schemas_with_strange_parameters_are_numbers(registry: str, parameters: Any) -> None:
    schema = schema_with(properties={"x": {**DECIMAL, "connect.parameters": parameters}})
    with SchemaRegistryClient({"url": registry}) as client:
        schema_id = client.register_schema(f"strange-{crc32(str(parameters).encode())}", Schema(json.dumps(schema), "JSON"))
    payloads = [b"\0" + schema_id.to_bytes(4, "big") + each for each in (b'{"x":1.5}', b'{"x":"AQ=="}')]
    found = made(JSON, registry).decode(pa.array(payloads, pa.binary()))
    assert found.column.to_pylist()[0] == {"x": 1.5}
    assert list(found.bad) == [1]
