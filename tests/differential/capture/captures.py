"""The two captures of one database, each with a broker of its own: the names of their topics are the same."""

from __future__ import annotations

import json
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import msgspec
from tools.kafka import DEBEZIUM_VERSION

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.connect.runtime.source_offsets import records_of
from barnabas.protocol.records.batch import Record
from barnabas.testing import Broker
from tests.connect.runtime.tasks import Tasks
from tests.differential.connect.record import kafka_connect
from tests.waiting import wait_until

WITHIN_S = 120.0
NAME = "capture"
JSON = "org.apache.kafka.connect.json.JsonConverter"
CONVERTERS = {"key.converter": JSON, "value.converter": JSON}
Event = tuple[Any, Any]  # key and value, each with its schema, or None
Events = Mapping[str, Sequence[Event]]  # by table


class Topics:
    """The topics of a capture."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self._prefix = prefix
        self._client = BlockingClient(
            ClientConfig.from_options({"bootstrap.servers": bootstrap, "isolation.level": "read_committed"})
        )

    def events(self, table: str) -> list[Event]:
        """The records of a table, such as `public.t`."""
        return [(_decoded(each.key), _decoded(each.value)) for each in self.records(table)]

    def records(self, table: str) -> list[Record]:
        """The same as bytes."""
        return list(records_of(self._client, f"{self._prefix}.{table}"))

    def close(self) -> None:
        self._client.close()


def _decoded(data: Any) -> Any:
    return None if data is None else msgspec.json.decode(data)


@contextmanager
def debezium(config: Mapping[str, str], version: str = DEBEZIUM_VERSION) -> Iterator[Topics]:
    """Debezium in Kafka Connect."""
    jars = f"debezium-{version}"
    with (
        tempfile.TemporaryDirectory() as folder,
        Broker() as broker,
        kafka_connect(broker.bootstrap_servers, Path(folder), jars) as url,
    ):
        body = json.dumps({**config, **CONVERTERS, "tasks.max": "1"}).encode()
        request = urllib.request.Request(
            f"{url}/connectors/{NAME}/config", body, {"Content-Type": "application/json"}, method="PUT"
        )  # fmt: skip
        try:
            urllib.request.urlopen(request, timeout=WITHIN_S).close()
        except HTTPError as error:
            error.add_note(f"Kafka Connect: {error.read().decode()[:2000]}")
            raise
        yield from _watched(Topics(broker.bootstrap_servers, config["topic.prefix"]), url)


def _watched(topics: Topics, url: str) -> Iterator[Topics]:
    try:
        yield topics
    except BaseException as error:
        with urllib.request.urlopen(f"{url}/connectors/{NAME}/status") as answer:
            error.add_note(f"Debezium: {answer.read().decode()[:2000]}")
        raise
    finally:
        topics.close()


@contextmanager
def ours(config: Mapping[str, str]) -> Iterator[Topics]:
    """Our capture."""
    with tempfile.TemporaryDirectory() as folder, Broker() as broker:
        tasks = Tasks(broker, Path(folder), NAME)
        topics = Topics(broker.bootstrap_servers, config["topic.prefix"])
        try:
            with tasks.running(tasks.job(config["connector.class"], "source", config, CONVERTERS)) as task:
                yield topics
                assert task.failure() is None, task.failure()
        finally:
            topics.close()
            tasks.close()


def await_event(topics: Topics, table: str, count: int) -> None:
    """Wait until a table has so many events."""
    wait_until(lambda: len(topics.records(table)) >= count, f"{table} has not {count} events", within_s=WITHIN_S)
