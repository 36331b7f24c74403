"""The topics of the cases, on any server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import NewTopic
from tests.pipelines.beside_spark.cases import FIRST_MS, LSO, OUT, RECORDS, T, U


@contextmanager
def made(bootstrap: str) -> Iterator[None]:
    """They are there in the block, and a transaction is open in LSO."""
    partitions = {T: 2, U: 1, LSO: 1, OUT: 1}
    with BlockingClient.to(bootstrap) as client:
        client.create_topics([NewTopic(name, count, 1, {"retention.ms": "-1"}) for name, count in partitions.items()])
        while partitions.keys() - client.topics_by_name(list(partitions)).keys():
            time.sleep(0.01)
        plain = Producer({"bootstrap.servers": bootstrap})
        for topic in (T, U):
            for partition in range(partitions[topic]):
                _send(plain, topic, partition, range(RECORDS))
        _send(plain, LSO, 0, range(RECORDS // 2))
        open_one = Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": "beside-open", "transaction.timeout.ms": "900000"}
        )
        open_one.init_transactions(30)
        open_one.begin_transaction()
        _send(open_one, LSO, 0, range(RECORDS // 2, RECORDS))
        try:
            yield
        finally:
            open_one.abort_transaction(30)
            client.delete_topics(list(partitions))


def _send(producer: Producer, topic: str, partition: int, numbers: range) -> None:
    for number in numbers:
        producer.produce(topic, b"%d" % number, partition=partition, timestamp=FIRST_MS + 1_000 * number)
    assert producer.flush(30) == 0
