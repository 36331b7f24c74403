"""The rows that a consumer of committed records reads, to compare those of a source with: librdkafka's."""

from __future__ import annotations

from typing import NamedTuple

import confluent_kafka

IDLE_S = 60.0


class ConsumedRow(NamedTuple):
    """A record as a consumer gets it."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


class CommittedConsumer:
    """A consumer with read_committed that is used for one partition after the other."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": "never-committed",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 10,
                "topic.metadata.refresh.interval.ms": -1,
            }
        )

    def close(self) -> None:
        self._consumer.close()

    def read(self, topic: str, partition: int, start: int, end: int) -> list[ConsumedRow]:
        """The records with start <= offset < end, as far as they are there."""
        rows: list[ConsumedRow] = []
        if start >= end:
            return rows
        self._consumer.assign([confluent_kafka.TopicPartition(topic, partition, start)])
        try:
            while True:
                message = self._consumer.poll(IDLE_S)
                assert message is not None, f"no record of {topic}-{partition} and no end within {IDLE_S:g} s"
                error = message.error()
                if error is not None:
                    assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
                    return rows
                offset = message.offset()
                assert offset is not None
                if offset >= end:
                    return rows
                rows.append(ConsumedRow(offset, message.timestamp()[1], message.key(), message.value()))
        finally:
            self._consumer.unassign()
