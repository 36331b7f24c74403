"""The tables of one caller: finding one by name, and reading it with the caller's rights."""

from __future__ import annotations

import difflib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from barnabas import limits
from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.errors import KafkaError
from barnabas.schemas.arrow.columns import RegistryAddress
from barnabas.sql.catalog.postgres.contents import Described, Facts
from barnabas.sql.catalog.postgres.relations import CatalogueRelation, catalogue
from barnabas.sql.catalog.relations import Relation, Rows
from barnabas.sql.catalog.store import TOPIC, DefinitionStore
from barnabas.sql.catalog.topics import TopicRelation, declared, holds_text, registered, undeclared
from barnabas.sql.interface import SqlError
from barnabas.sql.live.rows import LiveRows
from barnabas.sql.live.tables import LiveTables
from barnabas.sql.planning.query import Input
from barnabas.sql.running import Running
from barnabas.sql.settings import Settings
from barnabas.sql.states import UNDEFINED_TABLE
from barnabas.sql.writing.buffer import Buffer
from barnabas.tables.client_source import ClientSource
from barnabas.tables.memory_scan import MemoryScan, can_be_made
from barnabas.tables.source import Snapshot
from barnabas.tables.table import Table

R = TypeVar("R")
PUBLIC, TEMPORARY = "public", "pg_temp_"
SCHEMA_VALID_S = 5.0  # so long the newest schema of a topic is not asked for again
MOST_SAMPLES = 10_000  # topics that are remembered
SAMPLE_VALID_S = 30.0  # so long a topic that held text is not looked at again
_UNKNOWN = pa.table({})  # stands for rows of a key that other writers may have written otherwise
WAIT_S = 0.002  # between two looks at offsets that a session wrote


class Samples:
    """The contents of undeclared topics, for all sessions of an engine: by the schema registry, or by a look at their last records.

    Args:
        registry: None without one.
    """

    def __init__(self, registry: RegistryAddress | None = None) -> None:
        self._registry = registry
        self._registered: dict[str, tuple[float, TopicRelation | None]] = {}
        self._known: dict[str, tuple[float, tuple[bool, bool]]] = {}
        self._lock = threading.Lock()

    def registered(self, topic: str) -> TopicRelation | None:
        """A topic with the columns of its schema; None without one. Raises TableError, RegistryError, RegistryUnreachable."""
        if self._registry is None:
            return None
        known = self._registered.get(topic)
        if known is not None and time.monotonic() - known[0] < SCHEMA_VALID_S:
            return known[1]
        found = registered(topic, self._registry)
        with self._lock:
            if len(self._registered) >= MOST_SAMPLES:
                self._registered.clear()
            self._registered[topic] = time.monotonic(), found
        return found

    def get(self, topic: str) -> tuple[bool, bool] | None:
        """The answer that is known and still valid. Bytes stay bytes."""
        found = self._known.get(topic)
        if found is None or (any(found[1]) and time.monotonic() - found[0] > SAMPLE_VALID_S):
            return None
        return found[1]

    def put(self, topic: str, held: tuple[bool, bool]) -> None:
        with self._lock:
            if len(self._known) >= MOST_SAMPLES:
                self._known.clear()
            self._known[topic] = time.monotonic(), held


class Access:
    """A session's tables.

    Args:
        client: of the session.
        config: its settings, for the sources of topics.
        store: of definitions; shared by all sessions.
        samples: shared too.
        user, settings: of the session, for Postgres' catalogue.
        live: the tables in memory; shared by all sessions.
        key_index: the folder of the indexes of keys; None: no index.
    """

    def __init__(
        self,
        client: BlockingClient,
        config: ClientConfig,
        store: DefinitionStore,
        samples: Samples,
        user: str,
        settings: Settings,
        live: LiveTables,
        key_index: Path | None = None,
    ) -> None:
        self._user, self._settings, self._key_index = user, settings, key_index
        self._client, self._config, self._store, self._samples, self._live = client, config, store, samples, live
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
        system = catalogue(parts[-2] if len(parts) > 1 else None, parts[-1], lambda: self._facts(database))
        if system is not None:
            return system
        candidates = _candidates(parts, database)
        self._store.refresh()
        for name in candidates:
            found = self.declared(name) or self._topic(name)
            if found is not None:
                return found
        self._store.refresh(max_age_s=0)
        for name in candidates:
            found = self.declared(name)
            if found is not None:
                return found
        raise self.unknown(".".join(parts), position)

    def declared(self, name: str) -> TopicRelation | None:
        """A declared table by its name, whatever its case."""
        definitions = self._store.tables
        found = definitions.get(name) or definitions.get(name.lower())
        if found is None:
            same = [each for each in definitions if each.lower() == name.lower()]
            found = definitions[same[0]] if len(same) == 1 else None
        return None if found is None else declared(found)

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
        by_schema = self._samples.registered(name)
        if by_schema is not None:
            return by_schema
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
        """The names of all tables, declared or not, without the temporary ones."""
        definitions = self._store.tables
        used = {each.topic for each in definitions.values()}
        topics = (name for name in self._client.topics() if not name.startswith("__") and name != TOPIC and name not in used)
        return sorted(name for name in {*definitions, *topics} if not name.startswith(TEMPORARY))

    def _facts(self, database: str) -> Facts:
        """The facts for the rows of Postgres' catalogue."""
        self._store.refresh()
        definitions = self._store.tables
        described = []
        for name in self.names():
            if name in definitions:
                described.append(Described(name, declared(definitions[name]).columns, definitions[name]))
            else:
                described.append(Described(name, undeclared(name, is_text_key=True, is_text_value=True).columns))
        return Facts(self._user, database, list(self._settings), described)

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

    def datasets(
        self, inputs: Sequence[Input], running: Running, buffer: Buffer, memory: Mapping[str, pa.Table]
    ) -> list[tuple[str, Any]]:
        """The data for each input, as DuckDB scans it; inputs of one topic see the same offsets.

        Args:
            buffer: the rows of the open transaction.
            memory: the rows of relations in memory.
        """
        snapshots: dict[str, Snapshot] = {}
        held: dict[str, pa.RecordBatch | None] = {}
        made: list[tuple[str, Any]] = []
        for each in inputs:
            relation = each.relation
            if isinstance(relation, CatalogueRelation):
                made.append((each.alias, relation.rows().select(each.schema.names)))
                continue
            if not isinstance(relation, TopicRelation):
                made.append((each.alias, memory[relation.name]))
                continue
            topic = relation.topic
            if each.is_pending:
                made.append((each.pending_alias, buffer.rows(relation)))
            if relation.is_keyed and can_be_made(relation.layout, each.schema.names):
                if topic not in held:
                    held[topic] = self.live_records(relation, running, LiveRows.all)
                records = held[topic]
                if records is not None:
                    made.append((each.alias, self._in_memory(relation, each.schema.names, records)))
                    continue
            if topic not in snapshots:
                snapshots[topic] = self.snapshot(topic, running)
            table = Table(
                self.source(topic), relation.layout, snapshots[topic], newest=relation.is_keyed, key_index=self._key_index
            )
            made.append((each.alias, Rows(table, each.schema, running)))
        return made

    def live_records(self, relation: TopicRelation, running: Running, use: Callable[[LiveRows], R]) -> R | None:
        """The answer of `use` about the rows of a table with a primary key; None if they are not kept in memory."""
        written = self._written.get(relation.topic, {})
        found = self._live.look(relation, self._client, written, running.check, use)
        if found is not None:
            self._written.pop(relation.topic, None)
        return found

    def point(self, relation: TopicRelation, names: Sequence[str], key: pa.RecordBatch, running: Running) -> pa.Table | None:
        """The rows of one key; None if they must be looked for in the topic."""
        if not can_be_made(relation.layout, names):
            return None
        payload = relation.layout.key.encode(key)[0].as_py()
        found = self.live_records(relation, running, lambda rows: self._of_key(relation, names, rows, payload))
        return None if found is _UNKNOWN else found

    def _of_key(self, relation: TopicRelation, names: Sequence[str], rows: LiveRows, key: bytes) -> pa.Table:
        if not rows.is_canonical:
            return _UNKNOWN

        def decode(records: pa.RecordBatch) -> pa.Table:
            return self._in_memory(relation, names, records)

        if relation.layout.mode != "permissive":  # then other rows may be missing, or fail
            return decode(rows.of_key(key))
        return self._live.decoded(rows).of_key(rows, key, relation.definition, names, decode)

    def _in_memory(self, relation: TopicRelation, names: Sequence[str], records: pa.RecordBatch) -> pa.Table:
        return MemoryScan(relation.topic, relation.layout, names, records).table()


def _candidates(parts: Sequence[str], database: str) -> list[str]:
    """The names that a name with dots may stand for: of a table in the schema `public`, or of a topic with dots."""
    names = [parts[-1]] if len(parts) == 1 or parts[-2].lower() == PUBLIC else []
    if len(parts) == 2 and parts[0].lower() == database.lower():
        names.append(parts[-1])
    if len(parts) > 1:
        names.append(".".join(parts))
    return [*names, *(each.lower() for each in names if each != each.lower())]
