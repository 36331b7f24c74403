"""The live tables of an engine: a table with a primary key that fits into memory answers from there.

Each look first takes what was committed since the last, by the caller's client. So a caller without the right to read gets no row, and a
session reads what it wrote.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

from barnabas import limits
from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.errors import KafkaError
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.live.by_values import ENTRY_BYTES, RowsByValues
from barnabas.sql.live.decoded import DecodedRows
from barnabas.sql.live.reading import NewRecords, TableChanged
from barnabas.sql.live.rows import LiveRows
from barnabas.sql.live.stored import Name, StoredRows
from barnabas.sql.running import Running
from barnabas.sql.turns import Turns
from barnabas.tables.formats import ColumnFormat

R = TypeVar("R")
ATTEMPTS = 5
WAIT_S = 0.002  # between two looks for offsets that a session wrote


class Followed:
    """One topic; `rows` is None once it has turned out to be too large.

    Args:
        key: the format of its keys.

    A session has the turn while it looks at the topic; `lock` guards the rows, and nobody holds it while waiting for the cluster.
    """

    def __init__(self, key: ColumnFormat) -> None:
        self.turns = Turns()
        self.lock = threading.Lock()
        self.rows: LiveRows | None = LiveRows(key)
        self.looks = Looks()
        self.was_sought = False  # its file


class Looks:
    """Numbers the looks at one topic. A look that began after a statement serves that statement too, if the same caller made it: then many
    statements at once share a round trip. `ticket` may be called from any thread, the rest under the topic's lock."""

    def __init__(self) -> None:
        self._begun = self._ended = 0
        self._config: ClientConfig | None = None  # of the caller of the last look

    def ticket(self) -> int:
        """For a statement that begins."""
        return self._begun

    def begin(self) -> int:
        """The number of a look that begins."""
        self._begun += 1
        return self._begun

    def end(self, number: int, config: ClientConfig) -> None:
        """A look has succeeded."""
        self._ended, self._config = number, config

    def serve(self, ticket: int, config: ClientConfig) -> bool:
        """Whether a statement needs no look of its own."""
        return self._ended > ticket and self._config == config


class LiveTables:
    """Owns the rows of the tables that are followed; the one that was used least recently goes first.

    Args:
        stored: the files of rows from earlier servers; None: no files.
    """

    def __init__(self, stored: StoredRows | None = None) -> None:
        self._stored = stored
        self._tables: dict[Name, Followed] = {}
        self._lock = threading.Lock()
        self._decoded: WeakKeyDictionary[LiveRows, DecodedRows] = WeakKeyDictionary()
        self._by_values: WeakKeyDictionary[LiveRows, RowsByValues] = WeakKeyDictionary()

    def decoded(self, rows: LiveRows) -> DecodedRows:
        """The decoded form of the rows that `use` got."""
        with self._lock:
            return self._decoded.setdefault(rows, DecodedRows())

    def by_values(self, rows: LiveRows, columns: Sequence[str]) -> RowsByValues | None:
        """The indexes of the rows that `use` got; None if there is too little memory for one of these columns."""
        with self._lock:
            found = self._by_values.setdefault(rows, RowsByValues())
            if found.has(columns):
                return found
            needed = ENTRY_BYTES * sum(len(each.rows) for each in rows.partitions.values())
            return found if sum(self._sizes().values()) + self._made_bytes() + needed <= limits.MAX_SQL_LIVE_BYTES else None

    def _sizes(self) -> dict[Followed, int]:
        return {each: each.rows.size for each in self._tables.values() if each.rows is not None}

    def _made_bytes(self) -> int:
        """Of memory, for what was made of the rows."""
        return sum(each.size for each in self._decoded.values()) + sum(each.size for each in self._by_values.values())

    def look(
        self,
        relation: TopicRelation,
        client: BlockingClient,
        written: Mapping[str, Mapping[int, int]],
        running: Running,
        use: Callable[[LiveRows], R],
    ) -> R | None:
        """The result of `use` for the rows at this moment; None if the table does not fit into memory.

        Args:
            client: of the caller.
            written: offsets that the rows must reach, by the id of the topic and by partition.
            running: the statement.

        Raises:
            PartitionError, ClientError: the cluster refused, or did not answer.
            SqlError: the statement was cancelled.
        """
        topic = client.cluster.topics.get(relation.topic) or client.topics_by_name([relation.topic]).get(relation.topic)
        if topic is None or not topic.topic_id.int:
            return None
        for _ in range(ATTEMPTS):
            name = name_of(relation, topic.topic_id)
            followed = self._followed(name, relation)
            looks, awaited = followed.looks, written.get(topic.topic_id.hex, {})
            ticket = looks.ticket()
            with followed.turns.turn(running):
                if followed.rows is None:
                    return None
                self._take_stored(name, followed, client, relation)
                if looks.serve(ticket, client.config) and reaches(followed.rows, awaited):
                    with followed.lock:
                        return use(followed.rows)
                try:
                    reading = NewRecords(client, relation.topic, topic.topic_id)
                    number = looks.begin()
                    while reading.follow(followed.rows, followed.lock, self.room(followed)):
                        looks.end(number, client.config)
                        if reaches(followed.rows, awaited):
                            with followed.lock:
                                return use(followed.rows)
                        running.check()
                        time.sleep(WAIT_S)
                        number = looks.begin()
                    followed.rows = None
                    return None
                except TableChanged:
                    followed.rows = LiveRows(relation.layout.key)
            found = client.topics_by_name([relation.topic]).get(relation.topic)
            if found is None:
                return None
            topic = found
        return None

    def _take_stored(self, name: Name, followed: Followed, client: BlockingClient, relation: TopicRelation) -> None:
        """Begin with the rows of a file. Called by the session that has the turn."""
        if followed.was_sought:
            return
        followed.was_sought = True
        if self._stored is None or not self._stored.has(name):
            return
        try:
            stay_ms = int(client.describe_topic_config(relation.topic).get("delete.retention.ms") or 0)
        except KafkaError:  # the caller may not see it
            return
        found = self._stored.load(name, relation.layout.key, stay_ms / 1000)
        if found is not None:
            with followed.lock:
                followed.rows = found

    def close(self) -> None:
        """Store the rows for the next server. Nobody uses them any more."""
        with self._lock:
            tables, self._tables = self._tables, {}
        if self._stored is not None:
            for name, followed in tables.items():
                if followed.rows is not None:
                    self._stored.save(name, followed.rows)

    def followed(self, name: Name) -> Followed | None:
        """A topic that is followed already and fits into memory."""
        with self._lock:
            found = self._tables.pop(name, None)
            if found is not None:
                self._tables[name] = found
            return found if found is not None and found.rows is not None else None

    def _followed(self, name: Name, relation: TopicRelation) -> Followed:
        with self._lock:
            found = self._tables.pop(name, None) or Followed(relation.layout.key)
            self._tables[name] = found  # the last one is the one used most recently
            while len(self._tables) > limits.MAX_SQL_LIVE_TABLES:
                del self._tables[next(iter(self._tables))]
            return found

    def room(self, followed: Followed) -> int:
        """Bytes that the rows of a table may take. Decoded rows and indexes have what all rows leave free; if they take more, they go."""
        with self._lock:
            sizes = self._sizes()
            used = sum(sizes.values())
            if used + self._made_bytes() > limits.MAX_SQL_LIVE_BYTES:
                self._decoded.clear()  # a thread that uses some of them at this moment keeps its own until it is done
                self._by_values.clear()
            return limits.MAX_SQL_LIVE_BYTES - used + sizes.get(followed, 0)


def name_of(relation: TopicRelation, topic_id: UUID | None) -> Name:
    """Of the rows of a relation: relations with other keys have others.

    Args:
        topic_id: None for a name within one statement.
    """
    key = _format_of(relation.layout.key)  # type: ignore[arg-type]  # formats are compared by identity
    return relation.topic, topic_id.hex if topic_id is not None else "", key


@lru_cache(limits.MAX_SQL_LIVE_TABLES)
def _format_of(key: ColumnFormat) -> str:
    return repr((type(key).__name__, key.fields))


def reaches(rows: LiveRows, written: Mapping[int, int]) -> bool:
    """Whether the rows have these offsets, by partition."""
    parts = rows.partitions
    return all(partition not in parts or parts[partition].position >= end for partition, end in written.items())
