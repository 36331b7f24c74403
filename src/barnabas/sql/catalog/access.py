"""The tables of one caller: finding one by name, and reading it with the caller's rights."""

from __future__ import annotations

import difflib
import threading
import time
from collections.abc import Sequence
from typing import Any

from barnabas import limits
from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.errors import KafkaError
from barnabas.sql.catalog.relations import Relation, rows_of
from barnabas.sql.catalog.topics import TopicRelation, holds_text, undeclared
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.query import Input
from barnabas.sql.running import Running
from barnabas.sql.states import UNDEFINED_TABLE
from barnabas.tables.client_source import ClientSource
from barnabas.tables.source import Snapshot
from barnabas.tables.table import Table

PUBLIC = "public"
SAMPLE_VALID_S = 30.0  # so long a topic that held text is not looked at again
WAIT_S = 0.002  # between two looks at offsets that a session wrote


class Samples:
    """Which topics hold text, for all sessions of an engine. By topic id, or by name where the cluster has no ids."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, tuple[bool, bool]]] = {}
        self._lock = threading.Lock()

    def get(self, topic: str) -> tuple[bool, bool] | None:
        """What is known and still valid. Bytes stay bytes."""
        found = self._known.get(topic)
        if found is None or (any(found[1]) and time.monotonic() - found[0] > SAMPLE_VALID_S):
            return None
        return found[1]

    def put(self, topic: str, held: tuple[bool, bool]) -> None:
        with self._lock:
            if len(self._known) > 10_000:
                self._known.clear()
            self._known[topic] = time.monotonic(), held


class Access:
    """A session's tables.

    Args:
        client: of the session.
        config: its settings, for the sources of topics.
    """

    def __init__(self, client: BlockingClient, config: ClientConfig, samples: Samples) -> None:
        self._client, self._config, self._samples = client, config, samples
        self._sources: dict[str, ClientSource] = {}
        self._written: dict[str, dict[int, int]] = {}

    def close(self) -> None:
        """Release the connections."""
        for source in self._sources.values():
            source.close()
        self._sources.clear()

    def source(self, topic: str) -> ClientSource:
        """Reads a topic."""
        found = self._sources.get(topic)
        if found is None:
            if len(self._sources) >= limits.MAX_SQL_SOURCES:
                self._sources.pop(next(iter(self._sources))).close()
            found = self._sources[topic] = ClientSource(topic, self._config)
        return found

    def find(self, parts: Sequence[str], position: int | None, database: str) -> Relation:
        """The relation of a name, with its schema and database if they are given. Raises SqlError 42P01."""
        for name in _candidates(parts, database):
            found = self._topic(name)
            if found is not None:
                return found
        raise self.unknown(".".join(parts), position)

    def _topic(self, name: str) -> TopicRelation | None:
        try:
            topics = self._client.topics_by_name([name])
        except KafkaError as error:
            if error.code.name == "INVALID_TOPIC_EXCEPTION":
                return None
            raise
        found = topics.get(name)
        if found is None:
            return None
        known = f"{name} {found.topic_id.hex}"
        held = self._samples.get(known)
        if held is None:
            source = self.source(name)
            held = holds_text(source, source.snapshot())
            self._samples.put(known, held)
        return undeclared(name, is_text_key=held[0], is_text_value=held[1])

    def unknown(self, name: str, position: int | None) -> SqlError:
        """The error of a name that nothing has."""
        near = difflib.get_close_matches(name.lower(), [each.lower() for each in self.names()], 1)
        spelled = next((each for each in self.names() if near and each.lower() == near[0]), None)
        hint = f'perhaps you mean "{spelled}"' if spelled else "SHOW TABLES lists the tables"
        return SqlError(UNDEFINED_TABLE, f'relation "{name}" does not exist', position=position, hint=hint)

    def names(self) -> list[str]:
        """The names of all tables, declared or not."""
        return sorted(name for name in self._client.topics() if not name.startswith("__"))

    def snapshot(self, topic: str, running: Running) -> Snapshot:
        """The offsets of this moment, with everything that the session wrote before. Raises SqlError if it is cancelled."""
        source = self.source(topic)
        written = self._written.get(topic, {})
        while True:
            found = source.snapshot()
            if all(
                partition not in found.partitions or found.partitions[partition].end >= end for partition, end in written.items()
            ):
                self._written.pop(topic, None)
                return found
            running.check()
            time.sleep(WAIT_S)

    def wrote(self, topic: str, ends: dict[int, int]) -> None:
        """Take note of offsets that the session wrote, so that its next snapshot has them."""
        known = self._written.setdefault(topic, {})
        for partition, end in ends.items():
            known[partition] = max(end, known.get(partition, 0))

    def datasets(self, inputs: Sequence[Input], running: Running) -> list[tuple[str, Any]]:
        """What DuckDB scans for each input; inputs of one topic see the same offsets."""
        snapshots: dict[str, Snapshot] = {}
        made: list[tuple[str, Any]] = []
        for each in inputs:
            relation = each.relation
            assert isinstance(relation, TopicRelation)
            topic = relation.topic
            if topic not in snapshots:
                snapshots[topic] = self.snapshot(topic, running)
            table = Table(self.source(topic), relation.layout, snapshots[topic])
            made.append((each.alias, rows_of(table, each.schema, lambda: running.is_cancelled)))
        return made


def _candidates(parts: Sequence[str], database: str) -> list[str]:
    """The names that a name with dots may stand for: of a table in the schema `public`, or of a topic with dots."""
    names = [parts[-1]] if len(parts) == 1 or parts[-2].lower() == PUBLIC else []
    if len(parts) == 2 and parts[0].lower() == database.lower():
        names.append(parts[-1])
    if len(parts) > 1:
        names.append(".".join(parts))
    return [*names, *(each.lower() for each in names if each != each.lower())]
