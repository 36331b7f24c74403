"""Incremental snapshots of PostgreSQL (`debezium/windows.py`): the chunks, and what the stream of the slot says about them.

A transaction may have its commit record before the first of the two rows of a window, and become visible only after the chunk was read.
If the stream had one that the reading did not see, the chunk is read again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import psycopg
import pyarrow as pa
from psycopg.sql import Literal

from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.debezium.signals import INCREMENTAL, OPEN, Reading, Signal, Wanted
from barnabas.connect.plugins.debezium.windows import Chunk, Unreadable, Windows
from barnabas.connect.plugins.postgres_capture.catalog import Catalog, one_line, quoted
from barnabas.connect.plugins.postgres_capture.cells import NoRows, TableRows
from barnabas.connect.plugins.postgres_capture.events import IS_CREATE, IS_TRUNCATE, Events, Places
from barnabas.connect.plugins.postgres_capture.pgoutput import Relation, relation_of
from barnabas.connect.plugins.postgres_capture.settings import Settings
from barnabas.connect.plugins.postgres_capture.shape import Shape, shape_of
from barnabas.connect.plugins.postgres_capture.snapshot import rows_of

INSERT, RELATION, COMMIT = b"IRC"
MOST_XIDS = 100_000  # transactions that are remembered; far more than may wait to become visible
XIDS = 1 << 32  # they are counted so far, and then from the beginning
COLUMNS = 3  # of the table of signals: id, type, data
Made = list[tuple[Shape, Events]]


class Read(NamedTuple):
    """The rows of a chunk.

    Args:
        dedup: the names of columns that tell rows apart.
        running: transactions that the reading did not see because they had not ended.
        next_xid: all transactions from here on were not seen either.
    """

    shape: Shape
    table: pa.Table
    dedup: tuple[str, ...]
    running: frozenset[int]
    next_xid: int


class Chunks(Windows):
    """See the module. The stream calls `parts`, `taken` and `go_on`.

    Args:
        signals: the table of signals, SCHEMA.TABLE.
    """

    def __init__(self, settings: Settings, catalog: Catalog, reading: Reading, signals: str) -> None:
        super().__init__(settings, reading)
        self._settings, self._catalog, self._signals = settings, catalog, signals
        schema, _, table = signals.partition(".")
        self._table = f"{quoted(schema)}.{quoted(table)}"
        self._oids: set[int] = set()
        waiting = catalog.run(
            "SELECT backend_xid::text FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND backend_xid IS NOT NULL"
        )
        self._xids = deque((int(xid) for (xid,) in waiting), maxlen=MOST_XIDS)  # an earlier stream may have brought these

    def parts(self, messages: Sequence[bytes], lsns: Sequence[int]) -> Iterator[tuple[Sequence[bytes], Sequence[int]]]:
        """The messages, cut behind each signal, or behind the commit that follows it."""
        begin = 0
        for number, message in enumerate(messages):
            kind = message[0]
            if kind == RELATION:
                relation = relation_of(message)
                (self._oids.add if _name_of(relation) == self._signals else self._oids.discard)(relation.oid)
            elif kind == INSERT and int.from_bytes(message[1:5], "big") in self._oids:
                end = number + 1
                end += end < len(messages) and messages[end][0] == COMMIT
                yield messages[begin:end], lsns[begin:end]
                begin = end
        if begin < len(messages):
            yield messages[begin:], lsns[begin:]

    def taken(self, made: Made) -> tuple[Made, bool]:
        """Take note of what a part has: the events that become records, and whether the offset must be kept."""
        shown, signals = Made(), list[tuple[Signal, Places]]()
        for shape, events in made:
            if _name_of(shape.relation) == self._signals:
                signals += _signals(shape, events)
            else:
                self._note(shape, events)
            shown.append((shape, events))
        for signal, at in signals:
            chunk = self.signalled(signal)
            if chunk is not None:
                shown.append((chunk.rows.shape, _events(chunk.rows.table, at)))
        return shown, any(signal.kind != OPEN for signal, _ in signals)

    def _note(self, shape: Shape, events: Events) -> None:
        self._xids.extend(np.unique(events.at.xid).tolist())
        window = self.window
        if window is None or not window.is_open or window.chunk.rows.shape.relation.oid != shape.relation.oid:
            return
        if np.any(events.codes == IS_TRUNCATE):
            window.leave_out_all()
        names = [each.name for each in shape.relation.columns]
        dedup = window.chunk.rows.dedup
        if not set(dedup) <= set(names):
            window.is_stale = True  # the columns had other names
            return
        for rows in [events.key] if shape.key else [events.old, events.new]:
            window.leave_out(zip(*(rows.texts(names.index(each), None).to_pylist() for each in dedup), strict=True))

    def has_seen(self, chunk: Chunk) -> bool:
        read: Read = chunk.rows
        return not any(each in read.running or (each - read.next_xid) % XIDS < XIDS // 2 for each in self._xids)

    def rows_left(self, chunk: Chunk, places: Sequence[int]) -> Read:
        read: Read = chunk.rows
        return read._replace(table=read.table.take(pa.array(places, pa.int64())))

    def captured(self) -> Sequence[str]:
        names = (_name_of(each) for each in self._catalog.published())
        return [each for each in names if each != self._signals]

    def mark(self, name: str, kind: str, data: str) -> None:
        self._run("BEGIN")
        try:
            self._run("SET LOCAL synchronous_commit TO local")  # a standby that is away would stop the stream
            self._run(f"INSERT INTO {self._table} VALUES (%s, %s, %s)", (name, kind, data))
        finally:
            self._end("COMMIT")

    def chunk(self, wanted: Wanted) -> Chunk:
        found = self._catalog.published(wanted.name)
        if not found:
            raise Unreadable("it is not captured any more")
        shape = shape_of(found[0], self._catalog, self._settings)
        order = self._order(shape, wanted)
        self._run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            return self._chunk(shape, wanted, order)
        finally:
            self._end("ROLLBACK")

    def _order(self, shape: Shape, wanted: Wanted) -> tuple[int, ...]:
        """The places of the columns that order the rows."""
        if wanted.key is None:
            if not shape.key:
                raise Unreadable("it has no primary key; the signal can name another one as surrogate-key")
            return shape.key
        names = [each.name for each in shape.relation.columns]
        if wanted.key not in self._catalog.unique(shape.relation.oid) or wanted.key not in names:
            raise Unreadable(f"surrogate-key {wanted.key} is no column that is NOT NULL and has a unique index of its own")
        return (names.index(wanted.key),)

    def _chunk(self, shape: Shape, wanted: Wanted, order: tuple[int, ...]) -> Chunk:
        relation = shape.relation
        table = f"{quoted(relation.schema)}.{quoted(relation.table)}"
        names = [f"{table}.{quoted(relation.columns[place].name)}" for place in order]
        source = f"FROM ONLY {table} WHERE ({wanted.condition or 'true'})"
        [(snapshot,)] = self._run("SELECT txid_current_snapshot()::text")
        most = self.reading.most
        if most is None:
            texts, last = ", ".join(f"{each}::text" for each in names), ", ".join(f"{each} DESC" for each in names)
            most = [text for row in self._run(f"SELECT {texts} {source} ORDER BY {last} LIMIT 1", None) for text in row]
        rows = self._rows(relation, source, names, most)
        apart = shape.key or order
        dedup = tuple(relation.columns[place].name for place in apart)
        _, next_xid, running = snapshot.split(":")
        read = Read(shape, rows, dedup, frozenset(int(each) % XIDS for each in running.split(",") if each), int(next_xid) % XIDS)
        last_key = [rows.column(place)[-1].as_py().decode() for place in order] if rows.num_rows else None
        return Chunk(_keys(rows, apart), last_key, most, rows.num_rows < self._settings.chunk_rows, read)

    def _rows(self, relation: Relation, source: str, names: Sequence[str], most: Sequence[str]) -> pa.Table:
        if not most:
            return pa.table({str(each): pa.nulls(0, pa.binary()) for each in range(len(relation.columns))})
        connection, behind = self._catalog.connection, self.reading.behind
        key = f"({', '.join(names)})"

        def literal(values: Sequence[str]) -> str:
            return f"({', '.join(Literal(each).as_string(connection) for each in values)})"

        bounds = f"{key} <= {literal(most)}" + (f" AND {key} > {literal(behind)}" if behind is not None else "")
        columns = ", ".join(quoted(each.name) for each in relation.columns)
        limit = self._settings.chunk_rows
        statement = f"SELECT {columns} {source} AND {bounds} ORDER BY {', '.join(names)} LIMIT {limit}"
        try:
            with (
                connection.cursor() as cursor,
                cursor.copy(f"COPY ({statement}) TO STDOUT (FORMAT csv, FORCE_QUOTE *)".encode()) as copy,
            ):
                data = b"".join(bytes(each) for each in copy)
        except psycopg.Error as error:
            raise self._refused(ConnectError(one_line(error)), error) from error
        return rows_of(data, len(relation.columns)).table if data else self._rows(relation, source, names, ())

    def _run(self, statement: str, parameters: Sequence[Any] | None = ()) -> list[Any]:
        try:
            return self._catalog.run(statement, parameters)
        except ConnectError as error:
            raise self._refused(error, error.__cause__) from error

    def _end(self, how: str) -> None:
        """End a transaction. A failed one is rolled back by both ways."""
        if not self._catalog.connection.closed:
            self._run(how)

    def _refused(self, error: ConnectError, cause: BaseException | None) -> Exception:
        """What is raised for an error: the table is given up, unless another try may help."""
        passes = self._catalog.connection.closed or isinstance(cause, psycopg.OperationalError)
        return error if passes else Unreadable(str(error))


def _events(table: pa.Table, at: Places) -> Events:
    """The events of rows that were read.

    Args:
        at: of the signal behind them.
    """
    count, rows = table.num_rows, TableRows(table)
    places = Places(*(np.full(count, each[0]) for each in at))
    return Events(np.zeros(count, np.int8), NoRows(count), rows, rows, places, pa.repeat(INCREMENTAL, count))


def _keys(rows: pa.Table, places: Sequence[int]) -> list[tuple[str, ...]]:
    return list(zip(*(rows.column(place).cast(pa.string()).to_pylist() for place in places), strict=True))


def _signals(shape: Shape, events: Events) -> list[tuple[Signal, Places]]:
    """The signals of new rows."""
    if len(shape.relation.columns) < COLUMNS:
        return []
    columns = [events.new.texts(place, None).to_pylist() for place in range(COLUMNS)]
    return [
        (Signal(str(name), str(kind), data), events.at.take(np.array([row])))
        for row, (code, name, kind, data) in enumerate(zip(events.codes.tolist(), *columns, strict=True))
        if code == IS_CREATE
    ]


def _name_of(relation: Relation) -> str:
    return f"{relation.schema}.{relation.table}"
