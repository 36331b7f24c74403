"""Converters: bytes of records and columns, both ways."""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import fastavro
import msgspec
import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import given
from hypothesis import strategies as st

from barnabas.connect.converters import json_columns
from barnabas.connect.converters.avro_schema import record_text
from barnabas.connect.converters.json_converter import JsonConverter
from barnabas.connect.converters.json_schema import LOGICAL, name_of
from barnabas.connect.converters.registered_json import json_schema_text
from barnabas.connect.converters.registry import converter
from barnabas.connect.errors import ConnectError
from barnabas.testing import Broker

APACHE = "org.apache.kafka.connect."
DIGITS = 12345678901234567890123456789012345678


def made(name: str, **config: str) -> Any:
    return converter(
        {"value.converter": name, **{f"value.converter.{key}": value for key, value in config.items()}}, {}, is_key=False
    )


def encoded(name: str, values: Any, **config: str) -> list[bytes | None]:
    column = values if isinstance(values, pa.Array) else pa.array(values)
    found: list[bytes | None] = made(name, **config).encode(column, "t").to_pylist()
    return found


def decoded(name: str, *payloads: bytes | None, **config: str) -> list[Any]:
    found = made(name, **config).decode(pa.array(payloads, pa.binary()))
    assert not found.bad
    values: list[Any] = found.column.to_pylist()
    return values


@pytest.mark.parametrize(
    ("name", "values", "payloads"),
    [
        ("StringConverter", ["a", None, "ü"], [b"a", None, "ü".encode()]),
        ("ByteArrayConverter", [b"a", None], [b"a", None]),
        ("ShortConverter", [-2, None], [b"\xff\xfe", None]),
        ("IntegerConverter", [258], [b"\0\0\1\2"]),
        ("LongConverter", [-1], [b"\xff" * 8]),
        ("FloatConverter", [1.5], [b"\x3f\xc0\0\0"]),
        ("DoubleConverter", [1.5], [b"\x3f\xf8\0\0\0\0\0\0"]),
        ("BooleanConverter", [True, False], [b"\1", b"\0"]),
    ],
)
def test_plain_converters(name: str, values: list[Any], payloads: list[bytes | None]) -> None:
    assert encoded(name, values) == payloads
    assert decoded(name, *payloads) == values


def test_other_types_as_texts() -> None:
    assert encoded("StringConverter", [1, None]) == [b"1", None]
    assert encoded("StringConverter", [{"a": [1]}]) == [b'{"a":[1]}']
    assert encoded("StringConverter", [2.5]) == [b"2.5"]


def test_payloads_that_do_not_fit_are_named_by_row() -> None:
    found = made("IntegerConverter").decode(pa.array([b"\0\0\0\1", b"x"]))
    assert (found.column.to_pylist(), found.bad) == ([1, None], {1: "Size of data received by IntegerConverter is not 4"})


VALUES: dict[str, Any] = {
    "n": pa.array([1, None], pa.int32()), "s": pa.array(["x", "y"]), "b": pa.array([b"\1", None]), "d": pa.array([0.5, 1.5]),
    "t": pa.array([datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC), None], pa.timestamp("ms", "UTC")),
    "day": pa.array([datetime.date(1970, 1, 3), None]), "list": pa.array([[1, 2], None], pa.list_(pa.int64())),
    "in": pa.array([{"f": True}, {"f": None}]),
}  # fmt: skip


def struct() -> Any:
    return pa.StructArray.from_arrays(list(VALUES.values()), names=list(VALUES))


def test_json_with_schemas_is_that_of_kafka_connect() -> None:
    first, second = encoded("JsonConverter", struct())
    found = msgspec.json.decode(first or b"")
    assert found["payload"] == {
        "n": 1, "s": "x", "b": "AQ==", "d": 0.5, "t": 1767312000000, "day": 2, "list": [1, 2], "in": {"f": True},
    }  # fmt: skip
    assert found["schema"]["type"] == "struct"
    assert found["schema"]["fields"][0] == {"type": "int32", "optional": True, "field": "n"}
    assert found["schema"]["fields"][4] == {
        "type": "int64", "optional": True, "name": "org.apache.kafka.connect.data.Timestamp", "version": 1, "field": "t",
    }  # fmt: skip
    again = made("JsonConverter").decode(pa.array([first, None, second], pa.binary()))
    assert again.column.to_pylist() == [struct().to_pylist()[0], None, struct().to_pylist()[1]]


def test_a_decimal_of_kafka_connect_is_read() -> None:
    schema = b'{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","version":1,"parameters":{"scale":"2"}}'
    payload = b'{"schema":' + schema + b',"payload":"MDk="}'
    assert decoded("JsonConverter", payload) == [Decimal("123.45")]
    (written,) = encoded("JsonConverter", [Decimal("123.45")])
    assert decoded("JsonConverter", written) == [Decimal("123.45")]
    assert decoded("JsonConverter", *encoded("JsonConverter", [Decimal("-0.01"), Decimal("1.28")])) == [
        Decimal("-0.01"),
        Decimal("1.28"),
    ]


def test_many_rows_have_the_json_of_single_ones() -> None:
    odd = {"n": None, "s": 'a"\\\n\u00fc', "f": -0.5, "b": None, "t": datetime.datetime(1969, 12, 31, 23, 59, 59, 1000, datetime.UTC),
           "d": datetime.date(1969, 12, 31), "at": datetime.time(1, 2, 3, 4000)}  # fmt: skip
    rows = [odd, None, {**odd, "n": -7, "s": "", "f": 1e300, "b": True}] * 20
    plain = {"schemas.enable": "false"}
    many = encoded("JsonConverter", rows, **plain)
    kind = pa.array(rows).type
    single = [encoded("JsonConverter", pa.array([each], kind), **plain)[0] for each in rows]
    assert [each and msgspec.json.decode(each) for each in many] == [each and msgspec.json.decode(each) for each in single]
    assert msgspec.json.decode(many[0] or b"")["t"] == -999


NESTED: dict[str, Any] = {
    "same": {"a": 1, "b": "x", "c": None}, "bytes": b"\0\xff", "list": ["a", None, 'q"'], "structs": [{"n": 1}, None], "none": None,
    "decimal": Decimal("-1.28"), "big": Decimal("12345678901234567890.12"), "float": float("nan"), "empty": [],
    "map": [("k", 1)], "deep": {"in": {"list": [[1], None, []], "t": "x"}},
}  # fmt: skip


def test_columns_of_nested_values_have_the_json_of_single_ones() -> None:
    """Also where structs, lists and their parts are null, and where an array is a slice of another one."""
    fields = [(name, pa.array([value]).type) for name, value in NESTED.items() if name not in {"map", "big"}]
    kind = pa.struct([*fields, ("map", pa.map_(pa.string(), pa.int64())), ("big", pa.decimal256(50, 2))])
    other = {**NESTED, "same": None, "bytes": None, "list": [], "decimal": Decimal("1.27"), "float": -0.5, "none": None}
    rows = [NESTED, None, other, dict.fromkeys(NESTED), {**NESTED, "deep": {"in": None}, "float": float("-inf")}] * 20
    column: Any = pa.array([{}, *rows, {}], kind)
    many = encoded("JsonConverter", column[1:-1], **{"schemas.enable": "false"})
    assert many == [encoded("JsonConverter", pa.array([each], kind), **{"schemas.enable": "false"})[0] for each in rows]
    first = msgspec.json.decode(many[0] or b"")
    assert (first["bytes"], first["decimal"], first["float"], first["deep"]) == ("AP8=", "gA==", "NaN", NESTED["deep"])


def test_json_without_schemas() -> None:
    plain = {"schemas.enable": "false"}
    assert encoded("JsonConverter", [{"a": 1}, None], **plain) == [b'{"a":1}', None]
    assert decoded("JsonConverter", b'{"a":1}', b'{"b":"x"}', None, **plain) == [{"a": 1, "b": None}, {"a": None, "b": "x"}, None]
    assert decoded("JsonConverter", b"1", b'"x"', **plain) == ["1", "x"]
    found = made("JsonConverter", **plain).decode(pa.array([b"{no", b"{}"]))
    assert list(found.bad) == [0]


def test_json_with_schemas_refuses_plain_json() -> None:
    found = made("JsonConverter").decode(pa.array([b'{"a":1}']))
    assert found.bad[0].startswith('JsonConverter with schemas.enable requires "schema" and "payload" fields')


def test_configs_that_cannot_work() -> None:
    with pytest.raises(ConnectError, match=r"Class no\.Such could not be found"):
        made("no.Such")
    with pytest.raises(ConnectError, match=r'Missing required configuration "schema\.registry\.url"'):
        made("io.confluent.connect.avro.AvroConverter")
    with pytest.raises(ConnectError, match=r"Invalid value maybe for configuration schemas\.enable"):
        made("JsonConverter", **{"schemas.enable": "maybe"})


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    with Broker() as broker:
        yield broker.schema_registry_url


@pytest.mark.parametrize("name", ["avro.AvroConverter", "json.JsonSchemaConverter", "protobuf.ProtobufConverter"])
def test_converters_of_the_registry_read_what_they_wrote(registry: str, name: str) -> None:
    its = made(f"io.confluent.connect.{name}", **{"schema.registry.url": registry})
    column: Any = pa.array([{"n": 1, "s": "x"}, None, {"n": 2, "s": None}], pa.struct([("n", pa.int64()), ("s", pa.string())]))
    payloads = its.encode(column, name)
    other = its.encode(pa.array([{"n": 3, "more": 1.5}]), f"{name}-other")
    found = its.decode(pa.concat_arrays([payloads, other, pa.array([b"bad"], pa.binary())]))
    assert found.column.to_pylist()[:4] == [
        {"n": 1, "s": "x", "more": None}, None, {"n": 2, "s": None, "more": None}, {"n": 3, "s": None, "more": 1.5},
    ]  # fmt: skip
    assert found.bad == {4: "Unknown magic byte!"}


def test_confluents_client_reads_what_the_avro_converter_wrote_and_back(registry: str) -> None:
    its = made("io.confluent.connect.avro.AvroConverter", **{"schema.registry.url": registry})
    context = SerializationContext("beside", MessageField.VALUE)
    payload = its.encode(pa.array([{"n": 1, "s": "x"}]), "beside").to_pylist()[0]
    text = '{"type":"record","name":"R","fields":[{"name":"q","type":"double"}]}'
    with SchemaRegistryClient({"url": registry}) as client:
        assert AvroDeserializer(client)(payload, context) == {"n": 1, "s": "x"}
        written = AvroSerializer(client, text)({"q": 2.5}, SerializationContext("beside2", MessageField.VALUE))
    assert its.decode(pa.array([written], pa.binary())).column.to_pylist() == [{"q": 2.5}]


def test_values_without_fields_have_avro_schemas_too(registry: str) -> None:
    its = made("io.confluent.connect.avro.AvroConverter", **{"schema.registry.url": registry})
    assert its.decode(its.encode(pa.array(["a", "b"]), "texts")).column.to_pylist() == ["a", "b"]


def noted(name: str, kind: Any, connect_name: str, version: str = "1") -> pa.Field[Any]:
    return pa.field(name, kind, metadata={"connect.name": connect_name, "connect.version": version})


ROW = pa.struct([pa.field("id", pa.int32(), nullable=False), noted("day", pa.int32(), "io.debezium.time.Date")])
NOON = datetime.datetime(2020, 1, 2, 12, 0, 0, 5000, datetime.UTC)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (pa.int8(), 5, {"type": "int", "connect.type": "int8"}), (pa.int16(), 5, {"type": "int", "connect.type": "int16"}),
        (pa.uint32(), 5, "long"), (pa.null(), None, "string"), (pa.large_string(), "x", "string"), (pa.binary(), b"x", "bytes"),
        (
            pa.date32(), datetime.date(2020, 1, 2),
            {"type": "int", "connect.version": 1, "connect.name": f"{LOGICAL}Date", "logicalType": "date"},
        ),
        (
            pa.time32("ms"), datetime.time(12, 0, 0, 5000),
            {"type": "int", "connect.version": 1, "connect.name": f"{LOGICAL}Time", "logicalType": "time-millis"},
        ),
        (
            pa.timestamp("ms", "UTC"), NOON,
            {"type": "long", "connect.version": 1, "connect.name": f"{LOGICAL}Timestamp", "logicalType": "timestamp-millis"},
        ),
        (
            pa.decimal128(10, 2), Decimal("1.25"),
            {
                "type": "bytes", "scale": 2, "precision": 10, "connect.version": 1, "connect.parameters": {"scale": "2"},
                "connect.name": f"{LOGICAL}Decimal", "logicalType": "decimal",
            },
        ),
        (pa.list_(pa.int64()), [1, None], {"type": "array", "items": ["null", "long"]}),
        (pa.map_(pa.string(), pa.int64()), [("a", 1)], {"type": "map", "values": ["null", "long"]}),
    ],
)  # fmt: skip
def test_types_of_connect_in_avro(registry: str, kind: Any, value: Any, expected: Any) -> None:
    """Also those with microseconds, of which Kafka Connect has milliseconds."""
    finer = {pa.time32("ms"): pa.time64("us"), pa.timestamp("ms", "UTC"): pa.timestamp("us", "UTC")}
    its = made("io.confluent.connect.avro.AvroConverter", **{"schema.registry.url": registry})
    for each in {kind, finer.get(kind, kind)}:
        [field] = json.loads(record_text(pa.struct([("v", each)]), None, None))["fields"]
        assert field == {"name": "v", "type": ["null", expected], "default": None}
        column: Any = pa.array([{"v": value}, {"v": None}], pa.struct([("v", each)]))
        assert its.decode(its.encode(column, f"kind-{kind}")).column.to_pylist() == [{"v": value}, {"v": None}]


DATED = {
    "id": 1, "day": datetime.date(2020, 1, 2), "noon": datetime.time(12, 0, 0, 5000), "at": NOON,
    "inner": {"day": datetime.date(1970, 1, 2)}, "all": [NOON, None], "map": [("a", datetime.date(1970, 1, 3))],
}  # fmt: skip


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_dates_and_times_in_json_schema(registry: str, unit: Any) -> None:
    stamp = pa.timestamp(unit, "UTC")
    kind = pa.struct(
        [
            ("id", pa.int64()), ("day", pa.date32()), ("noon", pa.time32("ms") if unit == "ms" else pa.time64("us")), ("at", stamp),
            ("inner", pa.struct([("day", pa.date32())])), ("all", pa.list_(stamp)), ("map", pa.map_(pa.string(), pa.date32())),
        ]
    )  # fmt: skip
    its = made("io.confluent.connect.json.JsonSchemaConverter", **{"schema.registry.url": registry})
    column: Any = pa.array([DATED, {"id": 2}, None], kind)
    found = its.decode(its.encode(column, f"dated-{unit}"))
    assert not found.bad
    assert found.column.to_pylist() == column.to_pylist()
    at = json.loads(json_schema_text(kind, "x"))["properties"]["at"]
    integer = {"type": "integer", "title": f"{LOGICAL}Timestamp", "connect.version": 1, "connect.type": "int64"}
    assert at == {"oneOf": [{"type": "null"}, integer]}


def test_timestamps_in_protobuf(registry: str) -> None:
    its = made("io.confluent.connect.protobuf.ProtobufConverter", **{"schema.registry.url": registry})
    for unit in ("ms", "us"):
        column: Any = pa.array([{"at": NOON}], pa.struct([("at", pa.timestamp(unit, "UTC"))]))
        assert its.decode(its.encode(column, "timed")).column.to_pylist() == [{"at": NOON}]


def test_times_of_day_fit_to_a_schema_with_microseconds(registry: str) -> None:
    text = '{"type":"record","name":"R","fields":[{"name":"t","type":{"type":"long","logicalType":"time-micros"}}]}'
    with SchemaRegistryClient({"url": registry}) as client:
        client.register_schema("micros-value", Schema(text, "AVRO"))
    its = made("io.confluent.connect.avro.AvroConverter", **{"schema.registry.url": registry, "use.latest.version": "true"})
    time = datetime.time(1, 2, 3, 456)
    column: Any = pa.array([{"t": time}], pa.struct([("t", pa.time64("us"))]))
    assert its.decode(its.encode(column, "micros")).column.to_pylist() == [{"t": time}]


def test_names_of_types_outlast_avro(registry: str) -> None:
    its = made("io.confluent.connect.avro.AvroConverter", **{"schema.registry.url": registry})
    kind = pa.struct([noted("before", ROW, "s.t.Value"), noted("after", ROW, "s.t.Value"), pa.field("rows", pa.list_(ROW))])
    row = {"id": 1, "day": 2}
    column: Any = pa.array([{"before": None, "after": row, "rows": [row]}, None], kind)
    text = json.loads(record_text(kind, "s.t.Envelope", 1))
    assert [text[part] for part in ("namespace", "name", "connect.name", "connect.version")] == [
        "s.t",
        "Envelope",
        "s.t.Envelope",
        1,
    ]
    before, after, _ = (each["type"][1] for each in text["fields"])
    assert (before["name"], before["connect.name"], after) == ("Value", "s.t.Value", "s.t.Value")
    assert before["fields"][1]["type"][1] == {"type": "int", "connect.version": 1, "connect.name": "io.debezium.time.Date"}
    found: Any = its.decode(its.encode(column, "named", {b"connect.name": b"s.t.Envelope"})).column
    assert found.to_pylist() == column.to_pylist()
    assert name_of(found.type.field("after").metadata) == "s.t.Value"
    for rows in (found.type.field("after").type, found.type.field("before").type, found.type.field("rows").type.value_type):
        assert [name_of(each.metadata) for each in rows] == [None, "io.debezium.time.Date"]


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (pa.struct([("a-b", pa.int64())]), "Avro has no field with the name 'a-b'"),
        (pa.struct([("m", pa.map_(pa.int64(), pa.int64()))]), "the map m has keys of the type int64"),
        (pa.struct([("d", pa.duration("s"))]), r"the field d has the type duration\[s\]"),
        (
            pa.struct([noted("a", pa.struct([("x", pa.int64())]), "S"), noted("b", pa.struct([("y", pa.int64())]), "S")]),
            "two structs have the name S and other fields",
        ),
    ],
)
def test_what_avro_lacks_is_an_error(kind: Any, error: str) -> None:
    with pytest.raises(ConnectError, match=error):
        record_text(kind, None, None)


def test_a_record_with_a_record_within_comes_twice() -> None:
    """As the rows before and after a change of a table with numbers of any scale."""
    inner = pa.field(
        "n", pa.struct([("scale", pa.int32())]), metadata={b"connect.name": b"io.debezium.data.VariableScaleDecimal"}
    )
    rows = [pa.field(each, pa.struct([inner]), metadata={b"connect.name": b"my-shop.t.Value"}) for each in ("before", "after")]
    found = json.loads(record_text(pa.struct(rows), "my-shop.t.Envelope", 1))
    assert found["fields"][1]["type"] == ["null", "my_shop.t.Value"]
    assert fastavro.parse_schema(found)
    other = rows[1].with_type(pa.struct([inner, ("x", pa.int32())]))
    with pytest.raises(ConnectError, match=r"two structs have the name my_shop\.t\.Value and other fields"):
        record_text(pa.struct([rows[0], other]), "my-shop.t.Envelope", 1)


def test_names_that_avro_lacks_are_changed() -> None:
    text = json.loads(record_text(pa.struct([("v", pa.int64())]), "my-db.2t", None))
    assert [text[part] for part in ("namespace", "name", "connect.name")] == ["my_db", "_2t", "my-db.2t"]


@given(st.lists(st.none() | st.text(max_size=20), min_size=json_columns.FEW_ROWS, max_size=60), st.integers(0, 30))
def test_texts_have_the_escapes_of_the_library(values: list[str | None], begin: int) -> None:
    rows = [None if each is None else {"a": each, "b": {"same": 1, "c": each}} for each in [*values, *map(chr, range(160))]][
        begin:
    ]
    column = pa.array([{"a": "", "b": {"same": 1, "c": ""}}, *rows])[1:]
    assert json_columns.texts(column).to_pylist() == [
        None if each is None else msgspec.json.encode(each).decode() for each in rows
    ]


def test_json_beyond_the_limit_of_a_column_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_columns, "MOST_BYTES", 1000)
    with pytest.raises(ConnectError, match="100 records have 2200 bytes of JSON together, more than 1000"):
        json_columns.texts(pa.array(["x" * 20] * 100))


@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.parametrize("schemas", ["true", "false"])
def test_decimals_as_numbers(count: int, schemas: str) -> None:
    """`decimal.format=NUMERIC`, among few and many rows, in structs and lists."""
    made = JsonConverter({"schemas.enable": schemas, "decimal.format": "numeric"}, is_key=False)
    kind = pa.decimal128(10, 2)
    rows = [{"price": Decimal("1.50"), "more": [Decimal("-0.01"), None], "none": None}] * count
    column: Any = pa.array(rows, pa.struct([("price", kind), ("more", pa.list_(kind)), ("none", kind)]))
    payloads = [each.as_py() for each in made.encode(column, "t")]
    expected = b'{"price":1.50,"more":[-0.01,null],"none":null}'
    assert all(each.endswith(expected + b"}" if schemas == "true" else expected) for each in payloads)
    if schemas == "true":
        found = made.decode(pa.array(payloads, pa.binary())).column.to_pylist()
        assert found == rows
        base64_ = JsonConverter({"schemas.enable": "true"}, is_key=False)
        assert base64_.decode(base64_.encode(column, "t")).column.to_pylist() == rows


def in_envelope(payload: str, **schema: object) -> bytes:
    return f'{{"schema":{json.dumps(schema)},"payload":{payload}}}'.encode()


@pytest.mark.parametrize(
    "payload", [f'"{base64.b64encode(DIGITS.to_bytes(16, "big")).decode()}"', f"{DIGITS // 100}.{DIGITS % 100}"]
)
def test_decimals_keep_all_digits(payload: str) -> None:
    data = in_envelope(payload, type="bytes", name="org.apache.kafka.connect.data.Decimal", parameters={"scale": "2"})
    assert JsonConverter({}, is_key=False).decode(pa.array([data])).column.to_pylist() == [Decimal(f"{DIGITS}E-2")]


def test_numbers_beside_decimals_stay_numbers() -> None:
    fields = [
        {"field": "price", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "1"}},
        {"field": "rate", "type": "double"},
    ]
    data = in_envelope('{"price": 1.25, "rate": 0.1}', type="struct", fields=fields)
    assert JsonConverter({}, is_key=False).decode(pa.array([data])).column.to_pylist() == [{"price": Decimal("1.2"), "rate": 0.1}]


INT32 = [{"field": "a", "type": "int32"}]


@pytest.mark.parametrize(
    "bad",
    [
        in_envelope('{"a": "x"}', type="struct", fields=INT32), in_envelope("5", type="struct", fields=INT32),
        in_envelope('{"a": 99999999999999999999999}', type="struct", fields=INT32), b'{"schema":[1],"payload":1}',
        in_envelope("1", type="struct", fields=[{}]), in_envelope("[" * 20_000 + "]" * 20_000, type="struct", fields=INT32),
        in_envelope("1e40", type="bytes", name="org.apache.kafka.connect.data.Decimal", parameters={"scale": "2"}),
        in_envelope("1", type="bytes", name="org.apache.kafka.connect.data.Decimal", parameters=[]),
        in_envelope("[]", type="struct", fields=INT32), in_envelope('""', type="struct", fields=INT32),
        in_envelope('{"a": null}', type="struct", fields=INT32), in_envelope("{}", type="struct", fields=INT32),
        in_envelope("null", type="struct", fields=INT32), in_envelope('"%"', type="bytes"),
        in_envelope('""', type="array", items={"type": "string"}),
        in_envelope("[null]", type="array", items={"type": "string"}),
        in_envelope('{"k": {}}', type="map", keys={"type": "string"}, values={"type": "struct", "fields": INT32}),
    ],
)  # fmt: skip
def test_a_bad_record_leaves_the_others_of_its_batch(bad: bytes) -> None:
    good = in_envelope('{"a": 1}', type="struct", fields=INT32)
    found = JsonConverter({}, is_key=False).decode(pa.array([good, bad, good]))
    assert found.column.to_pylist() == [{"a": 1}, None, {"a": 1}]
    assert [*found.bad] == [1]


@pytest.mark.parametrize(
    ("payload", "schema", "value"),
    [
        ("1" + "0" * 30, {"type": "double"}, 1e30), ("null", {"type": "int32", "optional": True}, None),
        ("[[1, null]]", {"type": "map", "keys": {"type": "int32"}, "values": {"type": "int32", "default": 7}}, [(1, 7)]),
        ('{"a": null}', {"type": "struct", "fields": [{"field": "a", "type": "struct", "optional": True, "fields": INT32}]}, {"a": None}),
    ],
)  # fmt: skip
def test_payloads_at_the_edge_of_a_schema(payload: str, schema: dict[str, Any], value: Any) -> None:
    found = JsonConverter({}, is_key=False).decode(pa.array([in_envelope(payload, **schema)]))
    assert (found.column.to_pylist(), found.bad) == ([value], {})


def test_times_that_python_lacks_are_kept_beside_a_null() -> None:
    data = in_envelope(str(2**62), type="int64", name="org.apache.kafka.connect.data.Timestamp")
    found = JsonConverter({}, is_key=False).decode(pa.array([None, data])).column
    assert found.cast(pa.int64()).to_pylist() == [None, 2**62]


def test_json_without_a_schema_that_is_nested_too_deeply_is_a_bad_record() -> None:
    found = JsonConverter({"schemas.enable": "false"}, is_key=False).decode(pa.array([b"[" * 20_000, b"1"]))
    assert (found.column.to_pylist(), [*found.bad]) == ([None, 1], [0])


def test_another_form_of_decimals_is_refused() -> None:
    with pytest.raises(ConnectError, match=r"Invalid value roman for configuration decimal\.format"):
        JsonConverter({"decimal.format": "roman"}, is_key=False)
