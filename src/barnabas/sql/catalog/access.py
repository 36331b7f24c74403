"""The tables of one caller: finding one by name, and reading it with the caller's rights."""

from __future__ import annotations

import difflib
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from barnabas import limits
from barnabas.client.blocking import BlockingClient
from barnabas.client.errors import PartitionError
from barnabas.client.operations import fetch
from barnabas.error_codes import ErrorCode
from barnabas.errors import BarnabasError, KafkaError
from barnabas.schemas.arrow.columns import RegistryAddress
from barnabas.sql.catalog.definitions import PUBLIC, TableDefinition, parts_of_name
from barnabas.sql.catalog.postgres.contents import Described, Facts
from barnabas.sql.catalog.postgres.relations import CatalogueRelation, catalogue
from barnabas.sql.catalog.relations import KEY, Relation, Rows
from barnabas.sql.catalog.sequence_relation import SequenceRelation
from barnabas.sql.catalog.topics import TopicRelation, declared, holds_text, shown_columns, undeclared
from barnabas.sql.duck.enums import EnumDefinition, EnumParameter
from barnabas.sql.interface import SqlError
from barnabas.sql.live.by_values import Values
from barnabas.sql.live.decoded import Made, Slices
from barnabas.sql.live.rows import Choice, LiveRows
from barnabas.sql.live.stored import Name
from barnabas.sql.live.tables import name_of
from barnabas.sql.planning.inputs import Input
from barnabas.sql.planning.user_types import Types
from barnabas.sql.running import Running
from barnabas.sql.settings import Settings
from barnabas.sql.shared import Shared
from barnabas.sql.states import UNDEFINED_OBJECT, UNDEFINED_TABLE
from barnabas.sql.views.status import Known, StatusRelation, status
from barnabas.sql.writing.buffer import Buffer
from barnabas.tables.client_source import ClientSource
from barnabas.tables.formats import Raw
from barnabas.tables.memory_scan import MemoryScan, can_be_made
from barnabas.tables.scan import Columns
from barnabas.tables.source import Snapshot
from barnabas.tables.table import Table

logger = logging.getLogger(__name__)
R = TypeVar("R")
OWN_TOPICS = "_barnabas_"  # of definitions, jobs and sinks: SHOW TABLES does not list them
TEMPORARY = "pg_temp_"
_UNKNOWN = pa.table({})  # stands for rows of a key that other writers may have written otherwise
WAIT_S = 0.002  # between two looks at offsets that a session wrote


class Access:
    """A session's tables.

    Args:
        client: of the session, with the caller's rights.
        user, settings: of the session, for Postgres' catalogue.
        running: the session's statement.
    """

    def __init__(self, shared: Shared, client: BlockingClient, user: str, settings: Settings, running: Running) -> None:
        self._shared, self._client, self._user, self._settings, self._running = shared, client, user, settings, running
        self._sources: dict[str, ClientSource] = {}
        self._written: dict[str, dict[str, dict[int, int]]] = {}  # topic: its id: partition: offset
        self._own: dict[str, tuple[str, dict[int, int]]] = {}  # topic: its id and the offsets behind what the session wrote
        self.writes = 0  # another number after each write
        self.temporary: dict[str, str] = {}  # names of temporary tables in statements: in definitions

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
            found = self._sources[topic] = ClientSource(topic, self._client.config)
        return found

    def find(self, parts: Sequence[str], position: int | None, database: str) -> Relation:
        """The relation of a name, with its schema and database if they are given. Raises SqlError 42P01."""
        system = catalogue(parts[-2] if len(parts) > 1 else None, parts[-1], lambda: self._facts(database))
        if system is not None:
            return system
        told = status(parts[-2] if len(parts) > 1 else None, parts[-1], self._known_jobs)
        if told is not None:
            return told
        self._shared.definitions.refresh(self._running)
        has_public = len(parts) > 1 or PUBLIC in self.path()
        candidates = [*self._on_path(parts), *(_candidates(parts, database) if has_public else ())]
        for name in candidates:
            found = self.declared(name) or self._sequence(name)
            if found is not None:
                return found
        # another server may have declared it at this moment, with the topic that is there
        self._shared.definitions.refresh(self._running, max_age_s=0)
        self._shared.sequences.refresh(self._running, max_age_s=0)
        for name in candidates:
            found = self.declared(name) or self._sequence(name) or self._topic(name)
            if found is not None:
                return found
        raise self.unknown(".".join(parts), position)

    def _on_path(self, parts: Sequence[str]) -> list[str]:
        """The names that a name without a schema may stand for, by the setting `search_path`, up to the schema `public`."""
        found = []
        for schema in self.path() if len(parts) == 1 else ():
            if schema == PUBLIC:
                break
            found += [f"{schema}.{parts[0]}", f"{schema}.{parts[0].lower()}"]
        return found

    def qualified(self, parts: Sequence[str]) -> tuple[str, ...] | None:
        """A name with its schema, if `search_path` leads to a schema other than `public`."""
        found = next((each for each in self._on_path(parts) if each in self._shared.definitions.tables), None)
        return None if found is None else parts_of_name(found, self._shared.definitions.schemas)

    def path(self) -> list[str]:
        """The schemas of the setting `search_path` that there are, in their order."""
        named = [each.strip().strip('"') for each in (self._settings.get("search_path") or "").split(",")]
        return [each for each in named if each == PUBLIC or each in self._shared.definitions.schemas]

    def types(self) -> Types:
        """The types of users that the session may name."""
        self._shared.definitions.refresh(self._running)
        known = self._shared.definitions.types
        path = self.path()

        def find(parts: Sequence[str]) -> EnumDefinition | None:
            if len(parts) == 1:
                names = [parts[0] if schema == PUBLIC else f"{schema}.{parts[0]}" for schema in path]
            else:
                names = [parts[-1] if parts[-2] == PUBLIC else ".".join(parts[-2:])] if parts else []
            found = next((known[each] for each in names if each in known), None)
            if found is None:  # another server may have made it at this moment
                self._shared.definitions.refresh(self._running, max_age_s=0)
                latest = self._shared.definitions.types
                found = next((latest[each] for each in names if each in latest), None)
            return found

        return Types(find, known, path)

    def type_of_number(self, oid: int) -> pa.DataType:
        """A type of users, or the type of its arrays. Raises SqlError 42704."""
        self._shared.definitions.refresh(self._running)
        for each in self._shared.definitions.types.values():
            if oid in (each.oid, each.array):
                found = EnumParameter(each)
                return found if oid == each.oid else pa.list_(found)
        raise SqlError(UNDEFINED_OBJECT, f"type with OID {oid} does not exist")

    def plain_view(self, parts: Sequence[str], database: str | None = None) -> TableDefinition | None:
        """The definition of a lasting view that is no table; None for every other name."""
        store = self._shared.definitions
        store.refresh(self._running)
        found_on_path = next((each for each in self._on_path(parts) if each in store.tables), None)
        if len(parts) == 1 and found_on_path is None and PUBLIC not in self.path():
            return None
        name = found_on_path or parts[-1]
        if len(parts) > 1 and parts[-2] in store.schemas:
            name = f"{parts[-2]}.{parts[-1]}"
        elif len(parts) > 1 and parts[-2].lower() not in (PUBLIC, (database or "").lower()):
            return None
        if self.definition(name) is None and name not in self._client.cluster.topics:
            store.refresh(self._running, max_age_s=0)  # it may have been created at this moment
        found = self.definition(name)
        return found if found is not None and found.is_plain_view else None

    def declared(self, name: str) -> TopicRelation | None:
        """A declared table by its name, whatever its case."""
        found = self.definition(name)
        return None if found is None else self.relation_of(found)

    @property
    def registry(self) -> RegistryAddress | None:
        """The schema registry."""
        return self._shared.samples.registry

    def relation_of(self, definition: TableDefinition) -> TopicRelation:
        """A table by its definition. Raises TableError, RegistryError, RegistryUnreachable."""
        return declared(definition, self.registry)

    def definition(self, name: str) -> TableDefinition | None:
        """A definition by its name, whatever its case."""
        definitions = self._shared.definitions.tables
        found = definitions.get(name) or definitions.get(name.lower())
        if found is None:
            same = [each for each in definitions if each.lower() == name.lower()]
            found = definitions[same[0]] if len(same) == 1 else None
        return found

    def _sequence(self, name: str) -> SequenceRelation | None:
        found = self._shared.sequences.current(name)
        return None if found is None else SequenceRelation(name, found)

    def _topic(self, name: str) -> TopicRelation | None:
        try:
            topics = self._client.topics_by_name([name])
        except KafkaError as error:
            if error.code.name == "INVALID_TOPIC_EXCEPTION":
                return None
            raise
        found = topics.get(name)
        owner = self._shared.definitions.owner_of_topic(name)
        if found is None or (owner is not None and (owner.is_renamed or owner.view is not None)):
            return None
        by_schema = self._shared.samples.registered(name)
        if by_schema is not None:
            return by_schema
        known = f"{name} {found.topic_id.hex}"
        held = self._shared.samples.get(known)
        if held is None:
            source = self.source(name)
            held = holds_text(source, source.snapshot())
            self._shared.samples.put(known, held)
        return undeclared(name, is_text_key=held[0], is_text_value=held[1])

    def unknown(self, name: str, position: int | None) -> SqlError:
        """The error of a name that nothing has."""
        near = difflib.get_close_matches(name.lower(), [each.lower() for each in self.names()], 1)
        spelled = next((each for each in self.names() if near and each.lower() == near[0]), None)
        hint = f'perhaps you mean "{spelled}"' if spelled else "SHOW TABLES lists the tables"
        return SqlError(UNDEFINED_TABLE, f'relation "{name}" does not exist', position=position, hint=hint)

    def names(self) -> list[str]:
        """The names of all tables, declared or not, without the temporary ones."""
        definitions = self._shared.definitions.tables
        used = {each.topic for each in definitions.values()}
        topics = (name for name in self._client.topics() if not name.startswith(("__", OWN_TOPICS)) and name not in used)
        return sorted(name for name in {*definitions, *topics} if not name.startswith(TEMPORARY))

    def _facts(self, database: str) -> Facts:
        """The facts for the rows of Postgres' catalogue."""
        self._shared.definitions.refresh(self._running)
        definitions = self._shared.definitions.tables
        described = []
        with_schemas = self._shared.samples.with_schemas()
        for name in self.names():
            if name in definitions:
                schema, _ = parts_of_name(name, self._shared.definitions.schemas)
                described.append(Described(name, shown_columns(definitions[name]), definitions[name], schema))
            else:
                described.append(Described(name, self._columns_of_topic(name, has_schema=name in with_schemas)))
        own = (definitions[name] for name in sorted(self.temporary.values()) if name in definitions)
        described += [Described(each.name, shown_columns(each), each, each.name.partition(".")[0]) for each in own]
        self._shared.sequences.refresh(self._running, seen=self._shared.definitions.version)
        names = sorted(name for name in self._shared.sequences.sequences if not name.startswith(TEMPORARY))
        sequences = [found for name in names if (found := self._shared.sequences.current(name)) is not None]
        self._shared.functions.refresh(self._running)
        functions = [each.function for _, each in sorted(self._shared.functions.stored.items())]
        schemas = sorted(self._shared.definitions.schemas)
        types = [each for _, each in sorted(self._shared.definitions.types.items())]
        return Facts(self._user, database, list(self._settings), described, sequences, functions, schemas, types)

    def _columns_of_topic(self, name: str, *, has_schema: bool) -> pa.Schema:
        """The columns of an undeclared topic in the catalogue. A schema that gives no columns does not fail the list of all tables."""
        try:
            found = self._shared.samples.registered(name) if has_schema else None
        except BarnabasError as error:
            logger.warning("event=schema-without-columns topic=%s error=%r", name, str(error))
            found = None
        return (found or undeclared(name, is_text_key=True, is_text_value=True)).columns

    def _known_jobs(self) -> Known:
        self._shared.definitions.refresh(self._running)
        return Known(self._shared.views.reports(), self._shared.definitions.tables)

    def snapshot(self, topic: str) -> Snapshot:
        """The offsets of this moment, with everything that the session wrote before. Raises SqlError if it is cancelled."""
        source = self.source(topic)
        while True:
            found = source.snapshot()
            written = self._written.get(topic, {}).get(found.topic_id, {})
            if all(
                partition not in found.partitions or found.partitions[partition].end >= end for partition, end in written.items()
            ):
                self._written.pop(topic, None)
                return found
            self._running.check()
            time.sleep(WAIT_S)

    def check_readable(self, topic: str) -> None:
        """Raises PartitionError if the caller may not read a topic."""
        config = replace(self._client.config, fetch_max_wait_ms=0, fetch_min_bytes=0)
        partition = min(self._client.topics_by_name([topic])[topic].partitions)
        try:
            self._client.run(fetch(config, self._client.cluster, topic, partition, 0, 1))
        except PartitionError as error:
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise

    def check_writable(self, topic: str) -> None:
        """Raises PartitionError if the caller may not write to a topic. A request without records is refused behind the check of rights."""
        partition = min(self._client.topics_by_name([topic])[topic].partitions)
        try:
            self._client.produce(topic, partition, b"")
        except PartitionError as error:
            if error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                raise

    def wrote(self, topic: str, ends: dict[int, int]) -> None:
        """Take note of offsets that the session wrote, so that its next snapshot has them, unless the topic is another one then."""
        topic_id = self._topic_id(topic)
        if topic_id is None:
            return
        self.must_see(topic, ends)
        own_id, own = self._own.pop(topic, ("", {}))
        self._own[topic] = topic_id, _latest(own if own_id == topic_id else {}, ends)
        while len(self._own) > limits.MAX_SQL_SOURCES:
            del self._own[next(iter(self._own))]
        self.writes += 1

    def must_see(self, topic: str, ends: Mapping[int, int]) -> None:
        """Let the next snapshot of a topic wait for these offsets, unless the topic is another one then."""
        topic_id = self._topic_id(topic)
        if topic_id is not None:
            known = self._written.setdefault(topic, {})
            known[topic_id] = _latest(known.get(topic_id, {}), ends)

    def own_writes(self) -> dict[str, dict[int, int]]:
        """The offsets behind all that the session wrote, by topic, without topics that are gone."""
        return {topic: ends for topic, (topic_id, ends) in self._own.items() if self._topic_id(topic) == topic_id}

    def topic_id(self, topic: str) -> str | None:
        """The id of a topic as the session last heard of it; it asks if it never did. None: there is no such topic."""
        if topic not in self._client.cluster.topics:
            self._client.topics_by_name([topic])
        return self._topic_id(topic)

    def _topic_id(self, topic: str) -> str | None:
        found = self._client.cluster.topics.get(topic)
        return None if found is None else found.topic_id.hex if found.topic_id.int else ""

    def having(self, relation: TopicRelation, columns: Sequence[str], wanted: Collection[Values]) -> Choice:
        """Chooses the rows of a table that have one of these values in some columns."""
        live = self._shared.live

        def choose(rows: LiveRows) -> pa.RecordBatch:
            found = live.by_values(rows, columns)
            if found is None:
                return rows.all()
            return found.records(
                rows, relation.definition, columns, wanted, lambda records: self._in_memory(relation, columns, records)
            )

        # a row that does not fit has no columns, or an error; the value of a column that came later may be its default
        is_plain = relation.layout.mode == "permissive" and relation.filled.keys().isdisjoint(columns)
        return choose if is_plain else LiveRows.all

    def datasets(
        self, inputs: Sequence[Input], buffer: Buffer, memory: Mapping[str, pa.Table], chosen: Mapping[str, Choice]
    ) -> list[tuple[str, Any]]:  # fmt: skip
        """The data for each input, as DuckDB scans it; inputs of one topic see the same offsets.

        Args:
            buffer: the rows of the open transaction.
            memory: the rows of relations in memory.
            chosen: by topic, where the plan does not need all rows. It counts if one input alone reads the topic.
        """
        topics = [each.relation.topic for each in inputs if isinstance(each.relation, TopicRelation)]
        snapshots: dict[str, Snapshot] = {}
        held: dict[Name, pa.RecordBatch | None] = {}
        made: list[tuple[str, Any]] = []
        for each in inputs:
            relation = each.relation
            if isinstance(relation, (CatalogueRelation, SequenceRelation, StatusRelation)):
                made.append((each.alias, relation.rows().select(each.schema.names)))
                continue
            if not isinstance(relation, TopicRelation):
                made.append((each.alias, memory[relation.name]))
                continue
            topic = relation.topic
            if each.is_pending:
                made.append((each.pending_alias, buffer.rows(relation)))
            if relation.is_keyed and can_be_made(relation.layout, each.schema.names):
                kept = name_of(relation, None)
                if kept not in held:
                    held[kept] = self.live_records(
                        relation, chosen.get(topic, LiveRows.all) if topics.count(topic) == 1 else LiveRows.all
                    )
                records = held[kept]
                if records is not None:
                    made.append((each.alias, self._in_memory(relation, each.schema.names, records)))
                    continue
            if topic not in snapshots:
                snapshots[topic] = self.snapshot(topic)
            table = Table(
                self.source(topic), relation.layout, snapshots[topic], newest=relation.is_keyed, key_index=self._shared.key_index
            )
            made.append((each.alias, Rows(table, each.schema, self._running)))
        return made

    def live_records(self, relation: TopicRelation, use: Callable[[LiveRows], R]) -> R | None:
        """The answer of `use` about the rows of a table with a primary key; None if they are not kept in memory."""
        written = self._written.get(relation.topic, {})
        found = self._shared.live.look(relation, self._client, written, self._running, use)
        if found is not None:
            self._written.pop(relation.topic, None)
        return found

    def point(self, relation: TopicRelation, names: Sequence[str], key: pa.RecordBatch) -> pa.Table | None:
        """The rows of one key; None if they must be looked for in the topic."""
        if not can_be_made(relation.layout, names):
            return None
        payload = relation.layout.key.encode(key)[0].as_py()
        found = self.live_records(relation, lambda rows: self._of_key(relation, names, rows, payload))
        return None if found is _UNKNOWN else found

    def awaited(self, topic: str, topic_id: UUID) -> Mapping[int, int]:
        """The offsets of a topic that the session's next look must reach, by partition."""
        return self._written.get(topic, {}).get(topic_id.hex, {})

    def has_seen(self, topic: str) -> None:
        """A look has reached them."""
        self._written.pop(topic, None)

    def existing(self, relation: TopicRelation, keys: Sequence[bytes]) -> set[bytes]:
        """Those of the keys that a row has. A table that is not kept in memory is scanned for them."""
        known = self.live_records(relation, lambda rows: rows.having(keys))
        if known is not None:
            return known
        source, snapshot = self.source(relation.topic), self.snapshot(relation.topic)
        table = Table(source, Columns(Raw(KEY), Raw("value")), snapshot, newest=True, key_index=self._shared.key_index)
        batches = table.batches([KEY], pc.field(KEY).isin(pa.array(keys, pa.binary())))
        return {key for batch in batches for key in batch.column(KEY).to_pylist() if key is not None}

    def _of_key(self, relation: TopicRelation, names: Sequence[str], rows: LiveRows, key: bytes) -> pa.Table:
        if not rows.is_canonical:
            return _UNKNOWN

        def decode(records: pa.RecordBatch) -> pa.Table:
            return self._in_memory(relation, names, records)

        def make(records: pa.RecordBatch) -> Made:
            table = decode(records)
            return Made(Slices(table), table.nbytes)

        found = None
        if relation.layout.mode == "permissive":  # otherwise other rows may be missing, or fail
            found = self._shared.live.decoded(rows).of_key(rows, key, relation.definition, tuple(names), make)
        return decode(rows.of_key(key)) if found is None else found

    def _in_memory(self, relation: TopicRelation, names: Sequence[str], records: pa.RecordBatch) -> pa.Table:
        return MemoryScan(relation.topic, relation.layout, names, records).table()


def _latest(known: Mapping[int, int], ends: Mapping[int, int]) -> dict[int, int]:
    return {partition: max(known.get(partition, 0), ends.get(partition, 0)) for partition in {*known, *ends}}


def _candidates(parts: Sequence[str], database: str) -> list[str]:
    """The names that a name with dots may stand for: of a table in the schema `public`, or of a topic with dots."""
    names = [parts[-1]] if len(parts) == 1 or parts[-2].lower() == PUBLIC else []
    if len(parts) == 2 and parts[0].lower() == database.lower():
        names.append(parts[-1])
    if len(parts) == 3 and parts[0].lower() == database.lower() and parts[1].lower() != PUBLIC:
        names.append(".".join(parts[1:]))
    if len(parts) > 1:
        names.append(".".join(parts))
    return [*names, *(each.lower() for each in names if each != each.lower())]
