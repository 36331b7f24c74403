"""Streams over topics whose values have a registered schema, and inserts into such topics."""

from __future__ import annotations

import json
from pathlib import Path

from confluent_kafka import Producer

from barnabas.schemas.registry_client import RegistryClient
from barnabas.schemas.serializer import Serializer
from barnabas.testing import Broker
from tests.sql.engine.asking import asking, engine_of
from tests.sql.views.fake_engine import FakeEngine

SCHEMA = json.dumps(
    {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}]}
)


def test_avro_comes_and_goes(tmp_path: Path) -> None:
    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        with RegistryClient(broker.schema_registry_url) as client:
            for topic in ("typed", "other"):
                value = Serializer(client, topic, schema=SCHEMA)
                for number in range(3 if topic == "typed" else 1):
                    producer.produce(topic, value.encode({"id": number, "name": f"n{number}"}), key=b"k")
        assert producer.flush(60) == 0
        engine = engine_of(broker, registry=broker.schema_registry_url)
        with FakeEngine(broker.bootstrap_servers, tmp_path, broker.schema_registry_url):
            ask = asking(engine)
            ask("create stream plain as select id, name from stream typed where id > 0")
            assert sorted(ask.rows("select * from plain")) == [(1, "n1"), (2, "n2")]
            ask("insert into other (id, name) select id * 10, upper(name) from stream plain")
            assert sorted(ask.rows("select id, name from other")) == [(0, "n0"), (10, "N1"), (20, "N2")]
            ask("create materialized view newest as select max(id) as id from stream other")
            assert ask.rows("select id from newest") == [(20,)]
            ask.session.close()
        engine.close()
