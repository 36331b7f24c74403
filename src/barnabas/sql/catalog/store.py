"""The topic of definitions: `_barnabas_sql`, compacted, one partition; a record's key is the name of a table, its value the definition.
The key of a type is `\\0type` and its name. Records whose keys begin with another word behind a zero byte are of a later version, and
left alone; a version that knows no types warns of their records, and leaves them alone too.

Rules
  1. Every engine follows the topic. An engine looks for news when a name is unknown, and otherwise at most every REFRESH_S.
  2. A writer first takes over the transactional id, so that every other writer is fenced; then it reads to the end, decides, and writes in
     a transaction. A writer that was fenced starts again. So decisions follow one another, whatever engine makes them.
  3. A change is answered after it was read back.
  4. The caller's client writes, with the caller's rights; the engine's client follows.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from barnabas import limits
from barnabas.client import transactions
from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ClientError, PartitionError, ResourceError
from barnabas.client.interruption import Interruption
from barnabas.client.producer import BatchProducer
from barnabas.client.results import NewTopic
from barnabas.columnar.encode import RecordEncoder, TopicShape
from barnabas.error_codes import ErrorCode
from barnabas.sql.catalog.definitions import (
    TYPE,
    BadDefinition,
    Definition,
    TableDefinition,
    decode,
    decode_type,
    encode,
    with_type,
)
from barnabas.sql.duck.enums import EnumDefinition
from barnabas.sql.interface import SqlError
from barnabas.sql.running import Running
from barnabas.sql.states import DUPLICATE_OBJECT, LIMIT_EXCEEDED, SERIALIZATION_FAILURE, UNDEFINED_OBJECT, unknown_outcome
from barnabas.sql.turns import Turns
from barnabas.sql.writing.records import record_batch
from barnabas.tables.client_source import ClientSource
from barnabas.tables.errors import TableError
from barnabas.tables.formats import Raw
from barnabas.tables.scan import Columns
from barnabas.tables.source import Bounds, Snapshot
from barnabas.tables.table import Table

logger = logging.getLogger(__name__)
TOPIC = "_barnabas_sql"
TRANSACTIONAL_ID = "_barnabas_sql"
REFRESH_S = 0.1
ATTEMPTS = 20
FENCED = (
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)
_COLUMNS = Columns(Raw("name"), Raw("definition"))
Definitions = Mapping[str, TableDefinition]
Decide = Callable[[Definitions], Mapping[str, Any]]  # of `Definition`, and None


class DefinitionStore:
    """The definitions of a cluster, as this engine knows them.

    Args:
        config: of the client that follows the topic.
    """

    def __init__(self, config: ClientConfig) -> None:
        self._interruption = Interruption()
        own = replace(config, interruption=self._interruption)
        self._source = ClientSource(TOPIC, own)
        self._client = BlockingClient(own)
        self._turns = Turns()
        self._tables: dict[str, TableDefinition] = {}
        self._schemas: frozenset[str] = frozenset()
        self._types: dict[str, EnumDefinition] = {}
        self._topic_id, self._position = "", 0
        self._looked_at, self._is_looking = -REFRESH_S, False
        self.version = 0

    @property
    def tables(self) -> Definitions:
        """By name, as of the last look; a snapshot that does not change."""
        return self._tables

    @property
    def schemas(self) -> frozenset[str]:
        """The names of the schemas beside `public`."""
        return self._schemas

    @property
    def types(self) -> Mapping[str, EnumDefinition]:
        """The types of CREATE TYPE by name, as of the last look; a snapshot that does not change."""
        return self._types

    def owner_of_topic(self, topic: str) -> TableDefinition | None:
        """The table or the view whose topic it is, and goes with it."""
        return next((each for each in self._tables.values() if each.topic == topic and each.owns_topic), None)

    def view_of_topic(self, topic: str) -> TableDefinition | None:
        """The view that keeps its rows in a topic."""
        found = (each for each in self._tables.values() if each.topic == topic)
        return next((each for each in found if each.view is not None and each.view.is_materialized), None)

    @property
    def is_fresh(self) -> bool:
        """Whether `refresh` would read nothing, or another statement reads at this moment."""
        age_s = time.monotonic() - self._looked_at
        return age_s < REFRESH_S or (self._is_looking and age_s < 2 * REFRESH_S)

    def close(self) -> None:
        """Release the connections; no session is left."""
        self._source.close()
        self._client.close()

    def refresh(self, running: Running, *, max_age_s: float = REFRESH_S) -> None:
        """Read what was written; nothing if the last look is not older. Raises ClientError, KafkaError, SqlError.

        Args:
            running: the statement that waits for it.
        """
        if time.monotonic() - self._looked_at < max_age_s:
            return
        with self._turns.turn(running), running.using(self._interruption):
            if time.monotonic() - self._looked_at >= max_age_s:
                self._is_looking = True
                try:
                    self._catch_up()
                finally:
                    self._is_looking = False

    def _catch_up(self) -> None:
        if not self._client.topics_by_name([TOPIC]):
            self._forget("")
            self._looked_at = time.monotonic()
            return
        try:
            snapshot = self._source.snapshot()
        except TableError:  # it was deleted in between
            self._forget("")
            return
        if snapshot.topic_id != self._topic_id:
            self._forget(snapshot.topic_id)
        end = snapshot.partitions[0].end
        start = max(self._position, snapshot.partitions[0].start)
        if start < end:
            self._replay(snapshot, start, end)
            self._position = end
        self._looked_at = time.monotonic()

    def _forget(self, topic_id: str) -> None:
        if self._tables or self._position:
            self.version += 1
        self._tables, self._topic_id, self._position = {}, topic_id, 0
        self._schemas, self._types = frozenset(), {}

    def _replay(self, snapshot: Snapshot, start: int, end: int) -> None:
        part = Snapshot(snapshot.topic, snapshot.topic_id, {0: Bounds(start, end)})
        tables, schemas, types = dict(self._tables), set(self._schemas), dict(self._types)
        for batch in Table(self._source, _COLUMNS, part).batches(["name", "definition"]):
            for row in batch.to_pylist():
                if row["name"] is not None and row["name"].startswith(b"\0"):
                    _apply_type(types, row["name"], row["definition"])
                elif row["name"] is not None and row["name"].endswith(b"."):
                    schema = row["name"][:-1].decode("utf-8", "replace")
                    (schemas.discard if row["definition"] is None else schemas.add)(schema)
                else:
                    _apply(tables, row["name"], row["definition"])
        self._tables, self._schemas, self._types = tables, frozenset(schemas), types
        self.version += 1

    def change(self, client: BlockingClient, running: Running, decide: Decide) -> None:
        """Write what `decide` makes of the definitions; None deletes one. Called again if another engine wrote in between.

        Raises:
            SqlError: by `decide`, or because others write all the time.
            KafkaError, ClientError: the cluster refused it.
        """
        self._ensure_topic(client)
        for attempt in range(ATTEMPTS):
            try:
                if self._attempt(client, running, decide):
                    return
            except (ResourceError, PartitionError) as error:
                if error.code not in FENCED:
                    raise
            time.sleep(0.01 * (attempt + 1))
        raise SqlError(SERIALIZATION_FAILURE, "other servers change definitions at the same time", hint="try again")

    def _attempt(self, client: BlockingClient, running: Running, decide: Decide) -> bool:
        owner = client.run(transactions.init_producer_id(client.config, client.cluster, TRANSACTIONAL_ID)).owner
        self.refresh(running, max_age_s=0)
        changes = self.with_types_of_now(decide(self._tables))
        if not changes:
            return True
        if len(self._tables) + len(self._types) + len(changes) > limits.MAX_SQL_DEFINITIONS:
            raise SqlError(LIMIT_EXCEEDED, f"there are {limits.MAX_SQL_DEFINITIONS} tables already")
        payloads = {name: None if made is None else encode(made) for name, made in changes.items()}
        for name, payload in payloads.items():
            if payload is not None and len(payload) > limits.MAX_SQL_DEFINITION_BYTES:
                raise SqlError(LIMIT_EXCEEDED, f"the definition of {name} has more than {limits.MAX_SQL_DEFINITION_BYTES} bytes")
        second = client.has_second_transactions
        producer = BatchProducer(
            client, lambda: time.time_ns() // 1_000_000, owner=owner, transactional_id=TRANSACTIONAL_ID, second_version=second
        )
        try:
            encoder = RecordEncoder(lambda _: TopicShape(1), producer.send)
            encoder.write(record_batch([name.encode() for name in payloads], list(payloads.values())), TOPIC)
            encoder.finish()
            producer.flush()
        finally:
            producer.close()
        plan = transactions.end_transactions(
            client.config, client.cluster, {TRANSACTIONAL_ID: owner}, commit=True, second_version=second
        )
        try:
            ended = client.run(plan)[TRANSACTIONAL_ID]
        except ClientError as error:
            raise unknown_outcome(error, "the definition was written") from error
        if isinstance(ended, ErrorCode):
            if ended in FENCED:
                return False
            raise ResourceError(ended, f"transactional id {TRANSACTIONAL_ID}")
        self._read_back(running, changes)
        return True

    def _read_back(self, running: Running, changes: Mapping[str, Definition | None]) -> None:
        """Wait until the change is visible, or another one that came after it."""
        version = self.version
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            self.refresh(running, max_age_s=0)
            if self.version != version or all(self._known(name) == made for name, made in changes.items()):
                return
            time.sleep(0.002)
        raise SqlError(SERIALIZATION_FAILURE, "the definition was written, but could not be read back in time")

    def with_types_of_now(self, changes: Mapping[str, Definition | None]) -> Mapping[str, Definition | None]:
        """The changes with types as they are now: they may have changed since the statement was checked.

        Raises:
            SqlError: 42704 if the type of a column is gone, 42710 if a new table has the name of a type.
        """
        made = dict(changes)
        known = {each.oid: each for each in (*self._types.values(), *changes.values()) if isinstance(each, EnumDefinition)}
        for name, table in changes.items():
            if not isinstance(table, TableDefinition):
                continue
            if name in self._types and name not in self._tables:
                hint = "A relation has an associated type of the same name."
                raise SqlError(DUPLICATE_OBJECT, f'type "{table.plain_name}" already exists', hint=hint)
            for labels in [each.labels for each in table.columns if each.labels is not None]:
                if labels.oid not in known:
                    raise SqlError(UNDEFINED_OBJECT, f'type "{labels.name}" does not exist')
                table = with_type(table, known[labels.oid])
            made[name] = table
        return made

    def _known(self, key: str) -> Definition | None:
        return self._types.get(key.removeprefix(TYPE)) if key.startswith(TYPE) else self._tables.get(key)

    def _ensure_topic(self, client: BlockingClient) -> None:
        client.ensure_topic(NewTopic(TOPIC, 1, configs={"cleanup.policy": "compact"}))


def _apply_type(types: dict[str, EnumDefinition], key: bytes, payload: Any) -> None:
    if not key.startswith(TYPE.encode()):  # of a later version
        return
    name = key.decode("utf-8", "replace").removeprefix(TYPE)
    types.pop(name, None)
    if payload is not None:
        try:
            types[name] = decode_type(payload)
        except BadDefinition as error:
            logger.warning("event=sql-definition-unreadable type=%s reason=%r", name, str(error))


def _apply(tables: dict[str, TableDefinition], key: Any, payload: Any) -> None:
    if key is None:
        return
    name = key.decode("utf-8", "replace")
    if payload is None:
        tables.pop(name, None)
        return
    try:
        tables[name] = decode(payload)
    except BadDefinition as error:
        logger.warning("event=sql-definition-unreadable table=%s reason=%r", name, str(error))
        tables.pop(name, None)
