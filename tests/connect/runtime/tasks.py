"""Starts tasks of connectors as the driver does, and looks at what they wrote."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from confluent_kafka import Producer

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.results import NewTopic
from barnabas.connect.runtime import opening
from barnabas.connect.runtime.sink_task import SinkTask
from barnabas.connect.runtime.source_offsets import records_of
from barnabas.connect.runtime.source_task import SourceTask
from barnabas.engine.jobs import ConnectorWork, Job
from barnabas.testing import Broker
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STRINGS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}
JSON = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


class Tasks:
    """The tasks of one test.

    Args:
        name: of the test, from which the names of topics and connectors are made.
    """

    def __init__(self, broker: Broker, folder: Path, name: str) -> None:
        self.broker, self.folder = broker, folder
        self.name = "".join(each if each.isalnum() else "-" for each in name)
        self.topic = f"t-{self.name}"
        self.settings = {"bootstrap.servers": broker.bootstrap_servers}
        self._client = BlockingClient(ClientConfig.from_options({**self.settings, "isolation.level": "read_committed"}))
        self._running: list[SourceTask | SinkTask] = []
        self.spark: SparkSession | None = None  # for connectors that need it

    def job(
        self, plugin: str, kind: Literal["source", "sink"], config: Mapping[str, str], worker: Mapping[str, str] = STRINGS, *,
        task: int = 0, tasks: int = 1,
    ) -> Job:  # fmt: skip
        work = ConnectorWork(self.name, task, tasks, kind, plugin, {"name": self.name, **config}, worker)
        return Job(f"connect-{self.name}-{task}", work)

    def start(self, job: Job) -> SourceTask | SinkTask:
        made = opening.opened(job, self.settings, logging.getLogger("tests.connect"), lambda: self._session())
        self._running.append(made)
        made.start()
        return made

    def _session(self) -> SparkSession:
        assert self.spark is not None
        return self.spark

    def stop(self, task: SourceTask | SinkTask) -> None:
        self._running.remove(task)
        task.stop()

    @contextmanager
    def running(self, job: Job) -> Iterator[SourceTask | SinkTask]:
        task = self.start(job)
        yield task
        if task in self._running:
            self.stop(task)

    def create_topic(self, partitions: int = 1) -> None:
        self._client.create_topics([NewTopic(self.topic, partitions)])

    def produce(self, *values: str | bytes | None, key: str | None = None, partition: int = 0) -> None:
        producer = Producer(self.settings)
        for value in values:
            producer.produce(self.topic, value, key=key, partition=partition)
        assert producer.flush(30) == 0

    def values(self) -> list[bytes | None]:
        """The committed values of the topic, partition by partition."""
        return [None if each.value is None else bytes(each.value) for each in records_of(self._client, self.topic)]

    def committed(self, partitions: int = 1) -> dict[int, tuple[int, str]]:
        """Offset and metadata of the sink's group by partition."""
        places = [(self.topic, each) for each in range(partitions)]
        found = self._client.committed_offsets(f"connect-{self.name}", places)
        return {partition: (each.offset, each.metadata) for (_, partition), each in found.items()}

    def until(self, condition: Callable[[], Any], task: SourceTask | SinkTask, what: str) -> None:
        """Wait for a condition; a failure of the task ends it."""

        def holds() -> bool:
            assert task.failure() is None, task.failure()
            return bool(condition())

        wait_until(holds, what)

    def close(self) -> None:
        for each in self._running:
            each.stop()
        self._client.close()
