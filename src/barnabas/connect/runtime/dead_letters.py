"""Writes the dead letters of a sink to their topic, which the first one makes."""

from __future__ import annotations

import pyarrow as pa

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import NewTopic
from barnabas.connect.errors import ConnectError
from barnabas.connect.runtime.settings import PRODUCER, TaskSettings
from barnabas.connect.runtime.tolerance import DLQ, Tolerance
from barnabas.errors import KafkaError
from barnabas.pipelines.sink_options import sink_options
from barnabas.pipelines.writing import open_idempotent, write_batches

COLUMNS = {"key": "binary", "value": "binary", "topic": "string"}
REPLICATION = 3  # Kafka Connect's default


class DeadLetters:
    """Of one task. A letter of a batch that comes again after a kill is written again."""

    def __init__(self, tolerance: Tolerance, settings: TaskSettings) -> None:
        self._tolerance = tolerance
        self._task = sink_options({**settings.options(PRODUCER), "exactlyOnce": "false"}, COLUMNS, streaming=True).task
        self._client = BlockingClient(self._task.client)
        self._is_there = False

    def write(self, letters: pa.RecordBatch) -> None:
        """Returns when they are in the log. Raises ConnectError, WriteFailed, ClientError."""
        if not self._is_there:
            ensure_topic(self._client, self._tolerance)
            self._is_there = True
        write_batches(self._task, [letters], open_idempotent(self._task))

    def close(self) -> None:
        """Release the connection."""
        self._client.close()


def ensure_topic(client: BlockingClient, tolerance: Tolerance) -> None:
    """Make the topic of dead letters if it is not there. Raises ConnectError."""
    topic, given = tolerance.topic, tolerance.replication
    if client.topics_by_name([topic]):
        return
    replication = min(REPLICATION, len(client.cluster.brokers)) if given is None else int(given)
    try:
        client.ensure_topic(NewTopic(topic, 1, replication))
    except KafkaError as error:
        raise ConnectError(f"{DLQ}topic.name: the topic {topic} cannot be made: {error}") from None
