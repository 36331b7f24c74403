"""A client of a broker that compacts, and what there is to see of the cleaner."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.testing import Broker
from tests.server.wire import Line
from tests.waiting import WITHIN_S

BROKER = 4  # resource type; an empty name means the default of all brokers
CONFIG: dict[str, str | int | bool] = {"log.cleaner.backoff.ms": 50, "log.segment.delete.delay.ms": 0}
COMPACTED = {"cleanup.policy": "compact", "internal.segment.bytes": "20000", "min.cleanable.dirty.ratio": "0.01"}
NOT_YET = {**COMPACTED, "cleanup.policy": "delete"}  # one cleaning gets the whole log when the test changes the policy to compact
VALUE = "x" * 200


class Client:
    """A topic of one partition and what was written to it."""

    def __init__(self, broker: Broker, topic: str, config: dict[str, str]) -> None:
        self.broker, self.topic = broker, topic
        self.reconnect()
        self.admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result(WITHIN_S)
        self.last: dict[bytes, bytes] = {}

    def reconnect(self) -> None:
        """The broker was started, and has other addresses perhaps."""
        self.servers: dict[str, Any] = {"bootstrap.servers": self.broker.bootstrap_servers, "log_level": 0}
        self.admin = AdminClient(self.servers)

    def write(self, count: int, keys: int = 20) -> None:
        producer = Producer({**self.servers, "enable.idempotence": True, "batch.num.messages": 10})
        for number in range(count):
            key, value = f"{number % keys}", f"{number}{VALUE}"
            producer.produce(self.topic, key=key, value=value)
            self.last[key.encode()] = value.encode()
        assert producer.flush(WITHIN_S) == 0

    def read(self) -> list[tuple[int, bytes, bytes]]:
        consumer = Consumer({**self.servers, "group.id": "reader", "enable.partition.eof": True, "auto.offset.reset": "earliest"})
        consumer.assign([TopicPartition(self.topic, 0, 0)])
        found: list[tuple[int, bytes, bytes]] = []
        try:
            while True:
                message = consumer.poll(WITHIN_S)
                assert message is not None
                if message.error():
                    return found
                key, value = message.key(), message.value()
                assert isinstance(key, bytes)
                assert isinstance(value, bytes)
                found.append((message.offset() or 0, key, value))
        finally:
            consumer.close()

    def set(self, **settings: str) -> None:
        entries = [
            ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
            for name, value in settings.items()
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, self.topic, incremental_configs=entries)
        self.admin.incremental_alter_configs([resource])[resource].result(WITHIN_S)

    def set_default(self, name: str, value: str) -> None:
        """Set a dynamic default of all brokers."""
        change = AlterConfigsResource(
            resource_type=BROKER, resource_name="", configs=[AlterableConfig(name=name, config_operation=0, value=value)]
        )
        with Line(self.broker) as line:
            request = IncrementalAlterConfigsRequest(resources=[change])
            answer = line.ask((44, 1), request, IncrementalAlterConfigsResponse)
        assert answer.responses[0].error_code == 0, answer.responses[0].error_message

    @property
    def folder(self) -> Path:
        """Where the partition is, in whichever of the log directories."""
        found = [path for path in self.broker.data_dirs if (path / f"{self.topic}-0").exists()]
        return (found[0] if found else self.broker.data_dir) / f"{self.topic}-0"

    def is_clean(self) -> bool:
        """Whether all but the active segment is clean, says the checkpoint."""
        checkpoint = self.folder.parent / "cleaner-offset-checkpoint"
        active = max(int(path.stem) for path in self.folder.glob("*.log"))
        return checkpoint.exists() and f"{self.topic} 0 {active}" in checkpoint.read_text().splitlines()

    def check(self) -> None:
        """The last value of every key is there, and of the clean part nothing else."""
        active = max(int(path.stem) for path in self.folder.glob("*.log"))
        left = self.read()
        assert {key: value for _, key, value in left} == self.last
        clean = [key for offset, key, _ in left if offset < active]
        assert len(clean) == len(set(clean))
        assert not [path for path in self.folder.iterdir() if path.suffix in (".cleaned", ".swap")]


def cleaner_pids(broker: Broker) -> list[int]:
    return [int(pid) for pid in re.findall(r"event=cleaner-process-started pid=(\d+)", broker.log)]


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
