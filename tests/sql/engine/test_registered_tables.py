"""Tables whose values have a schema of the registry: declared from it, or registered for them."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from decimal import Decimal

import pytest
from confluent_kafka import Consumer

from barnabas.schemas.registry_client import RegistryClient
from barnabas.schemas.serializer import Deserializer, Serializer
from barnabas.sql.engine import SqlEngine
from barnabas.testing import Broker
from tests.sql.engine.asking import Asking, asking, engine_of


@pytest.fixture(scope="module")
def engine(broker: Broker) -> Iterator[SqlEngine]:
    engine = engine_of(broker, registry=broker.schema_registry_url)
    yield engine
    engine.close()


@pytest.fixture
def client(broker: Broker) -> Iterator[RegistryClient]:
    with RegistryClient(broker.schema_registry_url) as client:
        yield client


def records(broker: Broker, topic: str, count: int) -> list[tuple[bytes | None, bytes | None]]:
    """The keys and values of a topic's first records."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[tuple[bytes | None, bytes | None]] = []
    while len(found) < count:
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        found.append((message.key(), message.value()))
    consumer.close()
    return found


@pytest.mark.parametrize(
    ("format_name", "columns", "row"),
    [
        ("avro", "a int, b bigint, c text, d double, e boolean, f date", (1, 2, "x", 1.5, True, datetime.date(2024, 5, 6))),
        ("avro", "a numeric(10,2) not null, b bytea, c int[], d struct<x int, y text>", (
            Decimal("1.50"), b"z", [1, None], {"x": 1, "y": "t"},
        )),
        ("avro", "a timestamp, b timestamptz, c uuid", (
            datetime.datetime.fromisoformat("2024-01-02T03:04"), datetime.datetime(2024, 1, 2, 3, 4, tzinfo=datetime.UTC),
            "9a1f2b3c-0000-4000-8000-000000000001",
        )),
        ("json_schema", "a bigint, b text, c double, d boolean, e text[]", (1, "x", 1.5, False, ["p", "q"])),
        ("protobuf", "a int, b bigint, c text, d double, e boolean, f text[], g bytea", (1, 2, "x", 1.5, True, ["p"], b"z")),
    ],
)  # fmt: skip
def test_declared_columns_are_registered(
    ask: Asking, client: RegistryClient, broker: Broker, format_name: str, columns: str, row: tuple[object, ...]
) -> None:
    ask(f"create table made (id int primary key, {columns}) with (format = '{format_name}')")
    answer = client.get("subjects", "made-value", "versions", "latest")
    wanted = {"avro": "AVRO", "json_schema": "JSON", "protobuf": "PROTOBUF"}[format_name]
    assert answer.get("schemaType", "AVRO") == wanted
    places = ", ".join(f"${place}" for place in range(2, len(row) + 2))
    ask(f"insert into made values ($1, {places})", 1, *row)
    assert ask.rows("select * from made") == [(1, *row)]
    assert ask.rows("select * from made where id = 1") == [(1, *row)]
    ((key, value),) = records(broker, "made", 1)
    assert key == b"1"
    assert value is not None
    assert (value[0], int.from_bytes(value[1:5], "big")) == (0, answer["id"])
    ask("insert into made (id) values (2)") if "not null" not in columns else None
    ask("delete from made where id = 1")
    assert ask.rows("select count(*) from made where id = 1") == [(0,)]
    ask("drop table made")
    assert "made-value" not in client.get("subjects")


def test_columns_come_from_the_schema(ask: Asking, client: RegistryClient, broker: Broker) -> None:
    fields = [{"name": "n", "type": "long"}, {"name": "t", "type": ["null", "string"], "default": None}]
    schema = json.dumps({"type": "record", "name": "R", "fields": fields})
    value = Serializer(client, "given", schema=schema)
    ask("create table raw_given (v bytea) with (topic = 'given', format = 'raw')")
    ask("insert into raw_given values ($1)", value.encode({"n": 1, "t": "x"}))
    ask("create table inferred with (topic = 'given', format = 'avro')")
    assert [row[:3] for row in ask.rows("describe inferred")] == [("n", "bigint", "no"), ("t", "text", "yes")]
    ask("insert into inferred values (2, null), (3, 'z')")
    assert ask.rows("select * from inferred order by n") == [(1, "x"), (2, None), (3, "z")]
    written = records(broker, "given", 3)
    assert [Deserializer(client).decode(each or b"") for _, each in written] == [
        {"n": 1, "t": "x"}, {"n": 2, "t": None}, {"n": 3, "t": "z"},
    ]  # fmt: skip
    assert ask.error("insert into inferred values (null, 'x')").sqlstate == "23502"
    ask("create table keyed (k int primary key) with (topic = 'given', format = 'avro')")
    assert [row[0] for row in ask.rows("describe keyed")] == ["k", "n", "t"]
    ask("create table declared (t text, n bigint) with (topic = 'given', format = 'avro')")
    assert ask.rows("select n from declared where t = 'z'") == [(3,)]
    for columns, message in (
        ("n int, t text", 'the column "n" is int, and the schema of given-value has bigint'),
        ("n bigint", "the schema of given-value also has t"),
        ("n bigint, t text, u text", 'the schema of given-value has no column "u"'),
        ("n bigint primary key, t text", 'the column "n" of the key is a column of the values, too'),
    ):
        error = ask.error(f"create table wrong ({columns}) with (topic = 'given', format = 'avro')")
        assert (error.sqlstate, error.message) == ("42P16", message)
    error = ask.error("create table wrong with (topic = 'given', format = 'protobuf')")
    assert error.message == "the format is protobuf, and the newest schema of given-value is AVRO"
    ask("drop table inferred, keyed, declared, raw_given")
    assert "given-value" in client.get("subjects")


def test_a_later_schema_is_read_by_the_one_of_the_table(ask: Asking, client: RegistryClient) -> None:
    ask("create table early (a int, b text) with (format = 'avro')")
    ask("insert into early values (1, 'x')")
    answer = client.get("subjects", "early-value", "versions", "latest")
    schema = json.loads(answer["schema"])
    schema["fields"].append({"name": "c", "type": ["null", "long"], "default": None})
    later = Serializer(client, "early", schema=json.dumps(schema))
    ask("create table bytes_of_it (v bytea) with (topic = 'early', format = 'raw')")
    ask("insert into bytes_of_it values ($1)", later.encode({"a": 2, "b": "y", "c": 5}))
    assert ask.rows("select * from early order by a") == [(1, "x"), (2, "y")]
    ask("create table late with (topic = 'early', format = 'avro')")
    assert ask.rows("select * from late order by a") == [(1, "x", None), (2, "y", 5)]
    ask("drop table late, bytes_of_it, early")


def test_a_table_of_a_query(ask: Asking) -> None:
    ask("create table counted with (format = 'avro') as select i as n, 'x' || i as t from generate_series(1, 3) g(i)")
    assert ask.rows("select * from counted order by n") == [(1, "x1"), (2, "x2"), (3, "x3")]
    assert ("format = 'avro'") in ask.rows("show create table counted")[0][1]
    ask("drop table counted")


@pytest.mark.parametrize(
    ("columns", "format_name", "message"),
    [
        ("a time", "avro", "the format avro has no type for the column a: time"),
        ("a date", "json_schema", "the format json_schema has no type for the column a: date"),
        ("a numeric(5,2)", "protobuf", "the format protobuf has no type for the column a: decimal(5,2)"),
        ('"a-b" int', "avro", "the format avro has no name 'a-b': letters, digits and _"),
    ],
)
def test_types_that_a_format_lacks(ask: Asking, columns: str, format_name: str, message: str) -> None:
    error = ask.error(f"create table lacking ({columns}) with (format = '{format_name}')")
    assert (error.sqlstate, error.message) == ("42P16", message)
    assert ask.rows("select count(*) from pg_class where relname = 'lacking'") == [(0,)]


def test_without_a_schema_or_a_registry(ask: Asking, broker: Broker) -> None:
    error = ask.error("create table nothing with (format = 'avro')")
    assert error.message == "the subject nothing-value has no schema, and the statement declares no columns"
    other = engine_of(broker)
    asked = asking(other)
    error = asked.error("create table some (a int) with (format = 'avro')")
    assert (error.sqlstate, error.hint) == ("55000", "start it with -X schema.registry.url=http://HOST:PORT")
    ask("create table of_avro (a int) with (format = 'avro')")
    assert "knows none" in asked.error("select * from of_avro").message
    assert asked.rows("select attname from pg_attribute a join pg_class c on c.oid = attrelid where relname = 'of_avro'") == [
        ("a",)
    ]
    asked("drop table of_avro")
    assert ask.error("select * from of_avro").sqlstate == "42P01"
    asked.session.close()
    other.close()


def test_spellings(ask: Asking) -> None:
    for word in ("json-schema", "jsonschema", "JSON_SR"):
        ask(f"create table spelled (a bigint) with (format = '{word}')")
        ask("drop table spelled")
    assert ask.error("create table spelled (a bigint) with (format = 'thrift')").sqlstate == "22023"


@pytest.mark.parametrize("format_name", ["avro", "json-schema"])
def test_columns_are_added_to_the_schema(ask: Asking, client: RegistryClient, format_name: str) -> None:
    before = [] if "growing-value" not in client.get("subjects", deleted=True) else [1, 2]
    ask(f"create table growing (a bigint, b text) with (format = '{format_name}')")
    ask("insert into growing values (1, 'x')")
    ask("alter table growing add column c bigint, add column d text not null default 'none'")
    ask("insert into growing values (2, 'y', 3, 'z')")
    assert ask.rows("select * from growing order by a") == [(1, "x", None, "none"), (2, "y", 3, "z")]
    assert client.get("subjects", "growing-value", "versions") == [len(before) + 1, len(before) + 2]
    ask("drop table growing")


def test_the_default_of_an_added_column_is_in_the_schema(ask: Asking, client: RegistryClient) -> None:
    ask("create table older (a bigint, b text) with (format = 'avro')")
    ask("insert into older values (1, 'x')")
    ask("alter table older add column c int default 5, add column d varchar(9) default 'none'")
    ask("insert into older values (2, 'y', null, null)")
    assert ask.rows("select * from older order by a") == [(1, "x", 5, "none"), (2, "y", None, None)]
    schema = json.loads(client.get("subjects", "older-value", "versions", "latest")["schema"])
    assert schema["fields"][2] == {"name": "c", "type": ["int", "null"], "default": 5}
    ask("alter table older alter column c set default 6")
    assert ask.rows("select c from older where a = 1") == [(5,)]
    assert ask.error("alter table older add column e date default '2020-01-01'").sqlstate == "0A000"
    ask("drop table older")
    ask("create table documents (a bigint) with (format = 'json_schema')")
    assert ask.error("alter table documents add column b int default 5").sqlstate == "0A000"
    ask("drop table documents")


def test_an_evolution_that_the_registry_refuses(ask: Asking, client: RegistryClient) -> None:
    ask("create table strictly (a bigint) with (format = 'avro')")
    client.put("config", "strictly-value", body={"compatibility": "FULL"})
    ask("alter table strictly add column b text")
    ask("create table message (a bigint) with (format = 'protobuf')")
    assert ask.error("alter table message add column b text").sqlstate == "0A000"
    ask("drop table strictly, message")
    client.put("config", "narrow-value", body={"compatibility": "FORWARD"})
    ask("create table narrow (a bigint) with (format = 'json_schema')")
    error = ask.error("alter table narrow add column b text")
    assert (error.sqlstate, error.message.split(":")[0]) == ("42P16", "the registry refuses the schema of narrow-value")
    assert ask("select * from narrow").names == ["a"]
    ask("drop table narrow")
