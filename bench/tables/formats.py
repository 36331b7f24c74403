"""`python -m bench.tables.formats`: rows a second from a topic to Arrow, beside a loop over confluent-kafka's consumer.

Both read the same records of five columns (id, name, price, at, active) from the same broker. The loop decodes each value by `json` or
fastavro and makes a pyarrow table of the lists.
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.client.config import ClientConfig
from barnabas.schemas.registry_client import RegistryClient
from barnabas.schemas.serializer import Deserializer, Serializer
from barnabas.tables.client_source import ClientSource
from barnabas.tables.declared import columns_of
from barnabas.tables.scan import Columns, Scan
from barnabas.testing import Broker

COLUMNS = "id bigint, name text, price double, at timestamptz, active boolean"
NAMES = ["id", "name", "price", "at", "active"]
DISTINCT = 10_000  # records that repeat
FLUSH_RECORDS = 100_000
LOOP_SHARE = 10  # the loop reads one record in so many
SCHEMA = json.dumps({
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string"},
        {"name": "price", "type": ["null", "double"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "active", "type": "boolean"},
    ],
})  # fmt: skip


def rows() -> list[dict[str, Any]]:
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    return [
        {
            "id": number,
            "name": f"customer {number % 997}",
            "price": round(number * 1.37 % 1000, 2),
            "at": start + datetime.timedelta(seconds=number),
            "active": number % 3 == 0,
        }
        for number in range(DISTINCT)
    ]


def fill(bootstrap: str, topic: str, values: Sequence[bytes], count: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1)])[topic].result()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "queue.buffering.max.messages": 2 * FLUSH_RECORDS})
    for number in range(count):
        producer.produce(topic, values[number % len(values)])
        if number % FLUSH_RECORDS == 0:
            producer.flush(60)
    if producer.flush(60):
        sys.exit(f"{topic}: not all records were written")


def scanned(bootstrap: str, topic: str, columns: Columns, names: Sequence[str]) -> int:
    source = ClientSource(topic, ClientConfig.from_options({"bootstrap.servers": bootstrap}))
    scan = Scan(source, source.snapshot(), columns, names)
    found = sum(batch.num_rows for batch in scan.batches())
    source.close()
    return found


def looped(bootstrap: str, topic: str, decode: Callable[[bytes], dict[str, Any]], count: int) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "loop", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    lists: dict[str, list[Any]] = {name: [] for name in NAMES}
    taken = 0
    while taken < count:
        for message in consumer.consume(10_000, timeout=10):
            value = decode(message.value() or b"")
            for name in NAMES:
                lists[name].append(value[name])
            taken += 1
    consumer.close()
    return pa.table(lists).num_rows


def rates(what: Callable[[], int], repeat: int) -> float:
    """Rows a second, the median of some repetitions after one that is not counted."""
    what()
    found = []
    for _ in range(repeat):
        began = time.perf_counter()
        found.append(what() / (time.perf_counter() - began))
    return statistics.median(found)


def measure(broker: Broker, count: int, repeat: int) -> Iterable[tuple[str, float]]:
    bootstrap, url = broker.bootstrap_servers, broker.schema_registry_url
    values = rows()
    fill(bootstrap, "json", [json.dumps(each, default=datetime.datetime.isoformat).encode() for each in values], count)
    with RegistryClient(url) as client:
        serializer = Serializer(client, "avro", schema=SCHEMA)
        fill(bootstrap, "avro", [serializer.encode(each) or b"" for each in values], count)
        deserializer = Deserializer(client)
        plain = columns_of("json", format="json", columns=COLUMNS)
        avro = columns_of("avro", format="avro", registry=url)
        loop_count = count // LOOP_SHARE
        yield "count of records", rates(lambda: scanned(bootstrap, "json", plain, ["_offset"]), repeat)
        yield "JSON, five columns", rates(lambda: scanned(bootstrap, "json", plain, NAMES), repeat)
        yield "JSON, one column", rates(lambda: scanned(bootstrap, "json", plain, ["id"]), repeat)
        yield "Avro, five columns", rates(lambda: scanned(bootstrap, "avro", avro, NAMES), repeat)
        yield "JSON, confluent-kafka in a loop", rates(lambda: looped(bootstrap, "json", json.loads, loop_count), repeat)
        yield "Avro, confluent-kafka in a loop", rates(lambda: looped(bootstrap, "avro", deserializer.decode, loop_count), repeat)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.tables.formats", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="records of each topic (default 2,000,000)")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions (default 3)")
    options = parser.parse_args(arguments)
    with Broker() as broker:
        for name, rate in measure(broker, options.rows, options.repeat):
            print(f"{name:34} {rate / 1e6:8.3f} million rows/s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
