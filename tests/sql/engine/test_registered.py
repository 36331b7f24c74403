"""Topics without a definition whose values have a registered schema."""

from __future__ import annotations

import json

from confluent_kafka import Producer

from barnabas.schemas.registry_client import RegistryClient
from barnabas.schemas.serializer import Serializer
from barnabas.testing import Broker
from tests.sql.engine.asking import asking, engine_of

SCHEMA = json.dumps(
    {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]}
)


def test_a_topic_has_the_columns_of_its_schema(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    with RegistryClient(broker.schema_registry_url) as client:
        value = Serializer(client, "typed", schema=SCHEMA)
        for number in range(3):
            producer.produce("typed", value.encode({"id": number, "name": f"n{number}"}), key=b"k")
    producer.produce("untyped", b"plain")
    assert producer.flush(60) == 0
    engine = engine_of(broker, registry=broker.schema_registry_url)
    try:
        ask = asking(engine)
        answer = ask("select * from typed order by id")
        assert (answer.names, answer.rows) == (["id", "name"], [(0, "n0"), (1, "n1"), (2, "n2")])
        assert ask.rows("select _key, name from typed where id = $1", 1) == [(b"k", "n1")]
        assert ask.rows("select value from untyped") == [("plain",)]
        columns = "select table_name, column_name from information_schema.columns where table_name in ('typed', 'untyped') order by 1, 2"
        assert ask.rows(columns) == [("typed", "id"), ("typed", "name"), ("untyped", "key"), ("untyped", "value")]
    finally:
        engine.close()


def test_a_registry_that_is_not_there(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("bare", b"plain")
    assert producer.flush(60) == 0
    engine = engine_of(broker, registry="http://127.0.0.1:1")
    try:
        ask = asking(engine)
        ask("create table declared (a int)")
        assert ask.rows("select * from declared") == []
        assert ask.error("select * from bare").sqlstate == "08006"
        assert ("bare",) in ask.rows("select relname from pg_class")
    finally:
        engine.close()
