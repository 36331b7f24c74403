"""The loop that tables are compared with: confluent-kafka's consumer, whose records become lists and then an Arrow table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition

from bench.tables.topics import NAMES

TIMEOUT_S = 10.0
POLLED = 10_000


def counted(bootstrap: str, topic: str, count: int) -> int:
    """Take `count` records, and do nothing with them."""
    with _Consuming(bootstrap, topic) as consumer:
        taken = 0
        while taken < count:
            taken += len(consumer.consume(min(POLLED, count - taken), timeout=TIMEOUT_S))
    return taken


def raw(bootstrap: str, topic: str, count: int) -> int:
    """Keys, values and offsets as an Arrow table."""
    lists: tuple[list[Any], ...] = ([], [], [], [])
    with _Consuming(bootstrap, topic) as consumer:
        while len(lists[0]) < count:
            for message in consumer.consume(min(POLLED, count - len(lists[0])), timeout=TIMEOUT_S):
                lists[0].append(message.key())
                lists[1].append(message.value())
                lists[2].append(message.offset())
                lists[3].append(message.timestamp()[1])
    return pa.table(dict(zip(("key", "value", "offset", "timestamp"), lists, strict=True))).num_rows


def decoded(bootstrap: str, topic: str, decode: Callable[[bytes], dict[str, Any]], count: int) -> int:
    """Values, each decoded to an object, as an Arrow table of five columns."""
    lists: dict[str, list[Any]] = {name: [] for name in NAMES}
    with _Consuming(bootstrap, topic) as consumer:
        while len(lists["id"]) < count:
            for message in consumer.consume(min(POLLED, count - len(lists["id"])), timeout=TIMEOUT_S):
                value = decode(message.value() or b"")
                for name in NAMES:
                    lists[name].append(value[name])
    return pa.table(lists).num_rows


class _Consuming:
    """A consumer of the first partition, from its beginning."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "loop", "enable.auto.commit": False})
        self._consumer.assign([TopicPartition(topic, 0, 0)])

    def __enter__(self) -> Consumer:
        return self._consumer

    def __exit__(self, *_: object) -> None:
        self._consumer.close()
