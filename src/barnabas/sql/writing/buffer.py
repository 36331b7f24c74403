"""The rows of an open transaction: they are kept here until COMMIT, which writes them in one transaction of Kafka.

So an idle session blocks no reader, ROLLBACK needs no cluster, and the session's own statements see its rows: a plan joins them to the
rows of the topic.

Owns the rows by relation. `generation` changes when a relation gets its first rows or loses its last, so that plans are made again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import pyarrow as pa
from msgspec import Struct, structs

from barnabas import limits
from barnabas.sql.catalog.relations import DELETED
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.interface import SqlError
from barnabas.sql.states import LIMIT_EXCEEDED
from barnabas.sql.writing.records import keys_of, records_of, with_temporary_names
from barnabas.tables.row_names import ROW, places_in


class _Change(Struct, frozen=True):
    relation: TopicRelation
    rows: pa.Table
    deleted: bool
    keys: tuple[bytes, ...]


def _kind(change: _Change) -> tuple[object, ...]:
    """Adjacent changes of one kind become records together."""
    return change.relation.topic, change.relation.definition, change.deleted, change.rows.schema


class Buffer:
    """The changes of a transaction, in order."""

    def __init__(self) -> None:
        self._changes: list[_Change] = []
        self._marks: list[tuple[str, int]] = []
        self._keys: dict[str, dict[bytes, bool]] = {}
        self._bytes = 0
        self.generation = 0

    def __bool__(self) -> bool:
        return bool(self._changes)

    def add(self, relation: TopicRelation, rows: pa.Table, *, deleted: bool = False) -> None:
        """Keep rows. Raises SqlError if there are too many."""
        rows = with_temporary_names(relation, rows)
        self._bytes += rows.nbytes
        if self._bytes > limits.MAX_SQL_TRANSACTION_BYTES:
            raise SqlError(
                LIMIT_EXCEEDED,
                f"the transaction has more than {limits.MAX_SQL_TRANSACTION_BYTES >> 20} MB of rows",
                hint="commit more often",
            )
        keys = tuple(keys_of(relation, rows)) if relation.is_keyed else ()
        if relation.name not in self._keys:
            self.generation += 1
        self._changes.append(_Change(relation, rows, deleted, keys))
        self._keys.setdefault(relation.name, {}).update(dict.fromkeys(keys, not deleted))

    def names(self) -> frozenset[str]:
        """The relations with changes."""
        return frozenset(self._keys)

    def keys(self, name: str) -> Mapping[bytes, bool]:
        """The keys of a relation's changes, and whether each is there after them."""
        return self._keys.get(name, {})

    def rows(self, relation: TopicRelation) -> pa.Table:
        """The rows of a relation with the column DELETED; of a keyed one only the newest of each key."""
        schema = relation.identified.append(pa.field(DELETED, pa.bool_()))
        parts = []
        for each in self._changes:
            if each.relation.name != relation.name:
                continue
            columns = [
                each.rows.column(field.name) if field.name in each.rows.schema.names else pa.nulls(each.rows.num_rows, field.type)
                for field in relation.identified
            ]
            parts.append(pa.table([*columns, pa.array([each.deleted] * each.rows.num_rows, pa.bool_())], schema=schema))
        whole = pa.concat_tables(parts) if parts else schema.empty_table()
        if not relation.is_keyed:
            return whole
        keys = [key for each in self._changes if each.relation.name == relation.name for key in each.keys]
        newest = sorted({key: place for place, key in enumerate(keys)}.values())
        return whole.take(pa.array(newest, pa.int64()))

    def records(self) -> Iterator[tuple[str, list[pa.RecordBatch]]]:
        """All of it as records, in order."""
        for _, found in itertools.groupby(self._to_write(), _kind):
            changes = list(found)
            first = changes[0]
            rows = pa.concat_tables([each.rows for each in changes]).combine_chunks()
            yield first.relation.topic, records_of(first.relation, rows, first.deleted)

    def _to_write(self) -> Iterator[_Change]:
        """The changes without those that need no record.

        A row that the transaction brought has no name before it is in the log. So only its newest form is written, and nothing if it is
        gone again.
        """
        newest: dict[tuple[str, bytes], tuple[int, int]] = {}
        for number, each in enumerate(self._changes):
            if each.relation.has_row_names:
                newest |= {(each.relation.topic, key): (number, place) for place, key in enumerate(each.keys)}
        for number, each in enumerate(self._changes):
            if not each.relation.has_row_names:
                yield each
                continue
            places = [place for place, key in enumerate(each.keys) if newest[each.relation.topic, key] == (number, place)]
            rows = each.rows.take(pa.array(places, pa.int64()))
            if each.deleted:
                rows = rows.filter(places_in(rows.column(ROW))[0].is_valid())
            if rows.num_rows:
                yield structs.replace(each, rows=rows)

    @property
    def has_savepoints(self) -> bool:
        return bool(self._marks)

    def save(self, name: str) -> None:
        """Set a savepoint."""
        self._marks.append((name, len(self._changes)))

    def back_to(self, name: str) -> None:
        """Undo what came after a savepoint, which stays. Raises SqlError."""
        place = self._place(name)
        del self._marks[place + 1 :]
        self._cut(self._marks[place][1])

    def release(self, name: str) -> None:
        """Forget a savepoint and those after it. Raises SqlError."""
        del self._marks[self._place(name) :]

    def _place(self, name: str) -> int:
        for place in range(len(self._marks) - 1, -1, -1):
            if self._marks[place][0] == name:
                return place
        raise SqlError("3B001", f'savepoint "{name}" does not exist')

    def clear(self) -> None:
        """Forget everything."""
        self._marks.clear()
        self._cut(0)

    def _cut(self, length: int) -> None:
        before = self.names()
        del self._changes[length:]
        self._keys = {}
        for each in self._changes:
            self._keys.setdefault(each.relation.name, {}).update(dict.fromkeys(each.keys, not each.deleted))
        self._bytes = sum(each.rows.nbytes for each in self._changes)
        if self.names() != before:
            self.generation += 1
