"""What a topic no longer keeps goes by itself, and consumers are told where it begins."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from barnabas.testing import Broker

DEADLINE_S = 20


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"


def test_records_past_their_time_go_and_the_files_too() -> None:
    config: dict[str, str | int | bool] = {"log.retention.check.interval.ms": 50, "log.segment.delete.delay.ms": 0}
    with Broker(config=config) as broker:
        servers: dict[str, Any] = {"bootstrap.servers": broker.bootstrap_servers}
        client = AdminClient(servers)
        client.create_topics([NewTopic("old", 1, 1)])["old"].result(10)
        producer = Producer(servers)
        for number in range(10):
            producer.produce("old", str(number), timestamp=1_000 + number)
        assert producer.flush(10) == 0

        consumer = Consumer({**servers, "group.id": "g", "auto.offset.reset": "earliest"})
        place = TopicPartition("old", 0)
        # The default of seven days makes them old at once; keeping them for ever first would be a race with the check.
        wait_until(lambda: consumer.get_watermark_offsets(place, timeout=10) == (10, 10))
        wait_until(lambda: [p.name for p in (broker.data_dir / "old-0").glob("*.log*")] == [f"{10:020d}.log"])

        change = ConfigResource(
            ConfigResource.Type.TOPIC,
            "old",
            incremental_configs=[ConfigEntry("retention.ms", "-1", incremental_operation=AlterConfigOpType.SET)],
        )
        client.incremental_alter_configs([change])[change].result(10)
        producer.produce("old", "kept", timestamp=1_000)
        assert producer.flush(10) == 0
        consumer.assign([TopicPartition("old", 0, 0)])
        message = consumer.poll(DEADLINE_S)
        assert message is not None
        assert (message.offset(), message.value()) == (10, b"kept")
        consumer.close()
