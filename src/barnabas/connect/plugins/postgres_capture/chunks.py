"""Incremental snapshots of PostgreSQL: tables are read chunk by chunk, in the order of their keys, while the stream goes on.

Before a chunk is read, a row goes into the table of signals, and another one afterwards. They come by the stream, as all changes do. Rows
of the chunk that have changed between the two are left out, because their changes come by the stream. The others become records at the
second one, in one transaction with the offset that says how far the reading has come.

A transaction may have its commit record before the first of the two rows, and become visible only after the chunk was read. If the
stream had one that the reading did not see, the chunk is read again.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import psycopg
import pyarrow as pa
from psycopg.sql import Literal

from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.debezium.signals import CLOSE, INCREMENTAL, OPEN, Reading, Signal, Wanted
from barnabas.connect.plugins.postgres_capture.catalog import Catalog, quoted
from barnabas.connect.plugins.postgres_capture.cells import NoRows, TableRows
from barnabas.connect.plugins.postgres_capture.events import IS_CREATE, IS_TRUNCATE, Events, Places
from barnabas.connect.plugins.postgres_capture.pgoutput import relation_of
from barnabas.connect.plugins.postgres_capture.settings import Settings
from barnabas.connect.plugins.postgres_capture.shape import Shape, shape_of
from barnabas.connect.plugins.postgres_capture.snapshot import rows_of

logger = logging.getLogger(__name__)
INSERT, RELATION = b"IR"
MOST_XIDS = 100_000  # transactions that are remembered; far more than may wait to become visible
COLUMNS = 3  # of the table of signals: id, type, data
Made = list[tuple[Shape, Events]]


class Unreadable(Exception):
    """A table cannot be read by chunks."""


class Chunk(NamedTuple):
    """Rows that were read.

    Args:
        running: transactions that the reading did not see because they had not ended.
        most: the greatest key of the table.
    """

    shape: Shape
    rows: pa.Table
    running: frozenset[int]
    most: list[str]


class Window:
    """The time between the two rows in the table of signals."""

    def __init__(self, chunk: Chunk, name: str) -> None:
        self.chunk, self.name, self.is_open = chunk, name, False
        keys = [chunk.rows.column(place).cast(pa.string()).to_pylist() for place in chunk.shape.key]
        self._places = {key: place for place, key in enumerate(zip(*keys, strict=True))}
        self.last = list(next(reversed(self._places))) if self._places else None

    def changed(self, shape: Shape, events: Events) -> None:
        """Leave out rows that have changed."""
        if np.any(events.codes == IS_TRUNCATE):
            self._places.clear()
        keys = [events.key.texts(place, None).to_pylist() for place in shape.key]
        for key in zip(*keys, strict=True):
            self._places.pop(key, None)

    def rows(self) -> pa.Table:
        """The rows that are left."""
        return self.chunk.rows.take(pa.array(list(self._places.values()), pa.int64()))


class Chunks:
    """See the module. The stream calls `parts`, `taken` and `go_on`.

    Args:
        reading: what is to be read, as the offset has it.
    """

    def __init__(self, settings: Settings, catalog: Catalog, reading: Reading) -> None:
        self._settings, self._catalog, self.reading = settings, catalog, reading
        assert settings.signals is not None
        schema, _, table = settings.signals.partition(".")
        self._table = f"{quoted(schema)}.{quoted(table)}"
        self._oids: set[int] = set()
        self._window: Window | None = None
        self._xids: deque[int] = deque(maxlen=MOST_XIDS)

    def parts(self, messages: Sequence[bytes], lsns: Sequence[int]) -> Iterator[tuple[Sequence[bytes], Sequence[int]]]:
        """The messages, cut behind each signal."""
        begin = 0
        for number, message in enumerate(messages):
            kind = message[0]
            if kind == RELATION:
                relation = relation_of(message)
                is_signals = f"{relation.schema}.{relation.table}" == self._settings.signals
                (self._oids.add if is_signals else self._oids.discard)(relation.oid)
            elif kind == INSERT and int.from_bytes(message[1:5], "big") in self._oids:
                yield messages[begin : number + 1], lsns[begin : number + 1]
                begin = number + 1
        if begin < len(messages):
            yield messages[begin:], lsns[begin:]

    def taken(self, made: Made) -> Made:
        """Take note of what a part has; the rows of a chunk, if its window ends there."""
        signals: list[tuple[Signal, Places]] = []
        for shape, events in made:
            name = _name(shape)
            if name == self._settings.signals:
                signals += _signals(shape, events)
            else:
                self._note(name, shape, events)
        return [each for signal, at in signals for each in self._signalled(signal, at)]

    def _note(self, name: str, shape: Shape, events: Events) -> None:
        window = self._window
        if window is not None and window.is_open:
            if name == _name(window.chunk.shape):
                window.changed(shape, events)
        else:
            self._xids.extend(np.unique(events.at.xid).tolist())

    def _signalled(self, signal: Signal, at: Places) -> Made:
        window = self._window
        if signal.kind == OPEN:
            if window is not None and signal.id == f"{window.name}-open":
                window.is_open = True
        elif signal.kind == CLOSE:
            if window is not None and window.is_open and signal.id == f"{window.name}-close":
                self._window = None
                return self._closed(window, at)
        else:
            self.reading.take(signal, [_name_of(each) for each in self._catalog.published()])
        return []

    def _closed(self, window: Window, at: Places) -> Made:
        """The records of a chunk, unless it must be read again."""
        chunk, reading = window.chunk, self.reading
        if not reading.tables or reading.tables[0].name != _name(chunk.shape):
            return []  # it was stopped
        if not chunk.running.isdisjoint(self._xids):
            return []
        reading.behind, reading.most = window.last, chunk.most
        if chunk.rows.num_rows < self._settings.chunk_rows:
            reading.table_ended()
        rows = TableRows(window.rows())
        count = rows.table.num_rows
        if not count:
            return []
        places = Places(*(np.full(count, each[0]) for each in at))
        words = pa.repeat(INCREMENTAL, count)
        return [(chunk.shape, Events(np.zeros(count, np.int8), NoRows(count), rows, rows, places, words))]

    def go_on(self) -> bool:
        """Read the next chunk, if there is one to read, and no window; whether a table was given up."""
        if self._window is not None or self.reading.is_paused or not self.reading.tables:
            return False
        wanted = self.reading.tables[0]
        try:
            self._window = self._read(wanted)
        except (Unreadable, ConnectError) as error:
            if self._catalog.connection.closed:
                raise
            logger.warning("event=table-not-read table=%r reason=%r", wanted.name, str(error))
            self.reading.table_ended()
            return True
        return False

    def _read(self, wanted: Wanted) -> Window:
        found = self._catalog.published(wanted.name)
        if not found:
            raise Unreadable("it is not captured any more")
        shape = shape_of(found[0], self._catalog, self._settings)
        if not shape.key:
            raise Unreadable("it has no primary key")
        name = uuid.uuid4().hex
        self._mark(f"{name}-open", OPEN, "openWindowTimestamp")
        window = Window(self._chunk(shape, wanted), name)
        self._mark(f"{name}-close", CLOSE, "closeWindowTimestamp")
        return window

    def _mark(self, name: str, kind: str, field: str) -> None:
        data = f'{{"{field}": "{time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}"}}'
        self._catalog.run(f"INSERT INTO {self._table} VALUES (%s, %s, %s)", (name, kind, data))

    def _chunk(self, shape: Shape, wanted: Wanted) -> Chunk:
        relation, run, reading = shape.relation, self._catalog.run, self.reading
        names = [quoted(relation.columns[place].name) for place in shape.key]
        source = f"FROM ONLY {quoted(relation.schema)}.{quoted(relation.table)}"
        condition = f"({wanted.condition})" if wanted.condition else "true"
        run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            [(snapshot,)] = run("SELECT txid_current_snapshot()::text")
            most = reading.most
            if most is None:
                texts, last = ", ".join(f"{each}::text" for each in names), ", ".join(f"{each} DESC" for each in names)
                found = run(f"SELECT {texts} {source} WHERE {condition} ORDER BY {last} LIMIT 1", None)
                most = list(found[0]) if found else []
            rows = self._rows(shape, source, names, condition, most) if most else _parsed(b"", len(relation.columns))
        finally:
            if not self._catalog.connection.closed:
                self._catalog.connection.execute("ROLLBACK")
        running = frozenset(int(each) & 0xFFFFFFFF for each in snapshot.split(":")[2].split(",") if each)
        return Chunk(shape, rows, running, most)

    def _rows(self, shape: Shape, source: str, names: Sequence[str], condition: str, most: Sequence[str]) -> pa.Table:
        key, connection = f"({', '.join(names)})", self._catalog.connection

        def literal(values: Sequence[str]) -> str:
            return f"({', '.join(Literal(each).as_string(connection) for each in values)})"

        bounds = f"{key} <= {literal(most)}"
        if self.reading.behind is not None:
            bounds += f" AND {key} > {literal(self.reading.behind)}"
        columns = ", ".join(quoted(each.name) for each in shape.relation.columns)
        statement = f"SELECT {columns} {source} WHERE {condition} AND {bounds} ORDER BY {', '.join(names)} LIMIT {self._settings.chunk_rows}"
        try:
            with (
                connection.cursor() as cursor,
                cursor.copy(f"COPY ({statement}) TO STDOUT (FORMAT csv, FORCE_QUOTE *)".encode()) as copy,
            ):
                return _parsed(b"".join(bytes(each) for each in copy), len(shape.relation.columns))
        except psycopg.Error as error:
            raise Unreadable(" ".join(str(error).split())) from error


def _parsed(data: bytes, columns: int) -> pa.Table:
    """Rows in CSV, or none."""
    if data:
        return rows_of(data, columns).table
    return pa.table({str(each): pa.nulls(0, pa.binary()) for each in range(columns)})


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


def _name(shape: Shape) -> str:
    return _name_of(shape.relation)


def _name_of(relation: Any) -> str:
    return f"{relation.schema}.{relation.table}"
