"""A topic of one partition, as a test asks for it through confluent-kafka; settings of it and of its broker go over the wire by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.testing import Broker
from tests.server.wire import Line

WAIT_S = 60
TOPIC, BROKER = 2, 4  # resource types
ALL_BROKERS = ""
SET, DELETE = 0, 1
INCREMENTAL_ALTER_CONFIGS = (44, 1)


def alter(broker: Broker, kind: int, name: str, settings: Mapping[str, str | None]) -> None:
    """Set what has a value and delete what has none; confluent-kafka cannot name all brokers."""
    changes = [
        AlterableConfig(name=key, config_operation=DELETE if value is None else SET, value=value)
        for key, value in settings.items()
    ]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=changes)
    with Line(broker) as line:
        request = IncrementalAlterConfigsRequest(resources=[resource])
        answer = line.ask(INCREMENTAL_ALTER_CONFIGS, request, IncrementalAlterConfigsResponse)
    assert [(each.error_code, each.error_message) for each in answer.responses] == [(0, None)]


class Client:
    """Asks for one topic of one partition; made anew after a restart, for librdkafka remembers that the broker was away."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self.topic, self._broker = topic, broker
        self._settings: dict[str, Any] = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
        self.admin = AdminClient(self._settings)

    def create(self, **settings: str) -> Client:
        """Settings are named with underscores."""
        config = {key.replace("_", "."): value for key, value in settings.items()}
        self.admin.create_topics([NewTopic(self.topic, 1, 1, config=config)])[self.topic].result(WAIT_S)
        return self

    def delete(self) -> None:
        self.admin.delete_topics([self.topic])[self.topic].result(WAIT_S)

    def alter(self, settings: Mapping[str, str | None]) -> None:
        alter(self._broker, TOPIC, self.topic, settings)

    def produce(self, count: int, *, time_ms: int = 0, step_ms: int = 1, size: int = 1, key: bytes | None = None) -> list[str]:
        """Send records, each in a batch of its own; the errors that came back. Time 0 is now."""
        failed: list[str] = []

        def done(error: KafkaError | None, _: object) -> None:
            if error is not None:
                failed.append(error.name())

        producer = Producer({**self._settings, "linger.ms": 0, "batch.num.messages": 1, "message.max.bytes": 10_000_000})
        for number in range(count):
            timestamp = time_ms + number * step_ms if time_ms else 0
            producer.produce(self.topic, b"%d" % number * size, key, timestamp=timestamp, on_delivery=done)
        assert producer.flush(WAIT_S) == 0
        return failed

    def delete_before(self, offset: int) -> int:
        place = TopicPartition(self.topic, 0, offset)
        return int(next(iter(self.admin.delete_records([place]).values())).result(WAIT_S).low_watermark)

    def bounds(self) -> tuple[int, int]:
        consumer = self.consumer()
        try:
            found = consumer.get_watermark_offsets(TopicPartition(self.topic, 0), timeout=WAIT_S)
            assert found is not None
            return found
        finally:
            consumer.close()

    def read_values(self) -> list[bytes | None]:
        """The values of all records."""
        consumer = Consumer({**self._settings, "group.id": "reader", "enable.partition.eof": True, "auto.offset.reset": "error"})
        consumer.assign([TopicPartition(self.topic, 0, self.bounds()[0])])
        values: list[bytes | None] = []
        while (message := consumer.poll(WAIT_S)) is not None and message.error() is None:
            values.append(message.value())
        consumer.close()
        assert message is not None
        error = message.error()
        assert error is not None
        assert error.code() == KafkaError._PARTITION_EOF
        return values

    def offset_at(self, time_ms: int) -> int:
        """The first offset of that time or later."""
        consumer = self.consumer()
        (found,) = consumer.offsets_for_times([TopicPartition(self.topic, 0, time_ms)], timeout=WAIT_S)
        consumer.close()
        return int(found.offset)

    def consumer(self, reset: str = "error") -> Consumer:
        return Consumer({**self._settings, "group.id": "g", "auto.offset.reset": reset, "enable.auto.commit": False})

    @property
    def folder(self) -> Path:
        return self._broker.data_dir / f"{self.topic}-0"

    def files(self, suffix: str) -> list[int]:
        """The base offsets of the segments that have a file with this suffix."""
        return sorted(int(path.name.partition(".")[0]) for path in self.folder.glob(f"*{suffix}"))
