"""Incremental snapshots of MariaDB and MySQL (`debezium/windows.py`): the chunks, and what the binary log says about them.

A transaction that the binary log has before the first of the two rows of a window is visible when the chunk is read, because the server
commits transactions in the order of its binary log.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import pymysql

from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.debezium.envelope import READ
from barnabas.connect.plugins.debezium.signals import INCREMENTAL, Reading, Signal, Wanted
from barnabas.connect.plugins.debezium.windows import Chunk, Unreadable, Windows
from barnabas.connect.plugins.mysql_capture.events import Event, Row, Shape
from barnabas.connect.plugins.mysql_capture.logged import LoggedTable
from barnabas.connect.plugins.mysql_capture.server import Server, quoted, shape_of
from barnabas.connect.plugins.mysql_capture.settings import Settings

COLUMNS = 3  # of the table of signals: id, type, data
PASSING = frozenset(
    {1040, 1053, 1158, 1159, 1160, 1161, 1205, 1213, 1317, 1927, 1969}
)  # numbers of errors that another try may not meet
OF_CLIENT = range(2000, 3000)  # errors of connections
Literal = Callable[[str], str]


class Read(NamedTuple):
    """The rows of a chunk.

    Args:
        dedup: the places of columns that tell rows apart.
    """

    shape: Shape
    rows: Sequence[Row]
    dedup: tuple[int, ...]

    def key(self, row: Row) -> tuple[Any, ...]:
        """What tells a row apart, as a query or the binary log gives it."""
        return tuple(self.shape.forms[place].convert(row[place]) for place in self.dedup)


class Chunks(Windows):
    """See the module. The binary log calls `changed`, `emptied`, `signal` and `go_on`.

    Args:
        signals: the table of signals, DATABASE.TABLE.
    """

    def __init__(self, settings: Settings, server: Server, reading: Reading, signals: str) -> None:
        super().__init__(settings, reading)
        self._settings, self._server, self._signals = settings, server, signals
        self._table = ".".join(map(quoted, signals.split(".", 1)))

    def is_signals(self, shape: Shape) -> bool:
        """Whether a table is the one of signals."""
        return _name(shape) == self._signals

    def changed(self, shape: Shape, *rows: Row | None) -> None:
        """A row of a table was another one before, or is after a change."""
        if (read := self._open_read(shape)) is not None:
            names = [read.shape.names[place] for place in read.dedup]
            assert self.window is not None
            if not set(names) <= set(shape.names):
                self.window.is_stale = True  # the columns had other names
                return
            own = read._replace(shape=shape, dedup=tuple(shape.names.index(name) for name in names))
            self.window.leave_out(own.key(row) for row in rows if row is not None)

    def emptied(self, shape: Shape) -> None:
        """A table has no rows any more."""
        if self._open_read(shape) is not None:
            assert self.window is not None
            self.window.leave_out_all()

    def _open_read(self, shape: Shape) -> Read | None:
        window = self.window
        if window is None or not window.is_open or _name(window.chunk.rows.shape) != _name(shape):
            return None
        read: Read = window.chunk.rows
        return read

    def signal(self, row: Row, at: Event) -> tuple[Signal, Shape | None, list[Event]]:
        """A new row of the table of signals: the signal, and events of rows that were read."""
        name, kind, data = (None if each is None else _text(each) for each in [*row, None, None, None][:COLUMNS])
        signal = Signal(str(name), str(kind), data)
        chunk = self.signalled(signal)
        if chunk is None:
            return signal, None, []
        read: Read = chunk.rows
        return signal, read.shape, [at._replace(op=READ, new=each, snapshot=INCREMENTAL) for each in read.rows]

    def rows_left(self, chunk: Chunk, places: Sequence[int]) -> Read:
        read: Read = chunk.rows
        return read._replace(rows=[read.rows[place] for place in places])

    def captured(self) -> Sequence[str]:
        self._server.revive()
        return [_name(each) for each in self._server.shapes() if not self.is_signals(each)]

    def mark(self, name: str, kind: str, data: str) -> None:
        self._server.revive()
        self._run(f"INSERT INTO {self._table} VALUES (%s, %s, %s)", (name, kind, data))

    def chunk(self, wanted: Wanted) -> Chunk:
        database, _, name = wanted.name.partition(".")
        table = self._server.table(database, name)
        if not table.names or not self._settings.takes(database, name):
            raise Unreadable("it is not captured any more")
        shape = shape_of(table, self._settings, self._server.defaults(table))
        order = self._order(table, wanted)
        kinds = [_kind(table, place) for place in order]
        names = [quoted(table.names[place]) for place in order]
        source = f"FROM {quoted(database)}.{quoted(name)} WHERE ({wanted.condition or 'TRUE'})"
        most = self.reading.most
        if most is None:
            last = ", ".join(f"{each} DESC" for each in names)
            found = self._run(f"SELECT {', '.join(names)} {source} ORDER BY {last} LIMIT 1")
            most = [_stored(value) for row in found for value in row]
        rows = self._rows(table, source, names, kinds, most) if most else ()
        read = Read(shape, rows, shape.key or order)
        behind = [_stored(rows[-1][place]) for place in order] if rows else None
        return Chunk([read.key(row) for row in rows], behind, most, len(rows) < self._settings.chunk_rows, read)

    def _order(self, table: LoggedTable, wanted: Wanted) -> tuple[int, ...]:
        """The places of the columns that order the rows."""
        if wanted.key is None:
            if not table.key:
                raise Unreadable("it has no primary key; the signal can name another one as surrogate-key")
            return tuple(table.names.index(name) for name in table.key)
        if wanted.key not in self._server.unique(table):
            raise Unreadable(f"surrogate-key {wanted.key} is no column that is NOT NULL and has a unique index of its own")
        return (table.names.index(wanted.key),)

    def _rows(
        self, table: LoggedTable, source: str, names: Sequence[str], kinds: Sequence[str], most: Sequence[str]
    ) -> Sequence[Row]:
        def literals(values: Sequence[str]) -> list[str]:
            return [_LITERALS[kind](value) for kind, value in zip(kinds, values, strict=True)]

        bounds = _bound(names, literals(most), "<", "<=")
        if self.reading.behind is not None:
            bounds += f" AND {_bound(names, literals(self.reading.behind), '>', '>')}"
        columns = ", ".join(quoted(each) for each in table.names)
        limit = self._settings.chunk_rows
        return self._run(f"SELECT {columns} {source} AND {bounds} ORDER BY {', '.join(names)} LIMIT {limit}")

    def _run(self, statement: str, parameters: Sequence[Any] | None = None) -> Sequence[Any]:
        """The rows of a statement. A table is given up for an error, unless another try may help."""
        try:
            return self._server.run(statement, parameters)
        except ConnectError as error:
            cause = error.__cause__
            number = cause.args[0] if isinstance(cause, pymysql.err.MySQLError) and cause.args else 2000
            if number in PASSING or number in OF_CLIENT:
                raise
            raise Unreadable(str(error)) from error


def _bound(names: Sequence[str], literals: Sequence[str], beyond: str, last: str) -> str:
    """Whether the columns of a key are before or behind a key. The server finds such rows by the index of the first column.

    Args:
        beyond: how a column compares if that decides.
        last: how the last column compares.
    """
    if len(names) == 1:
        return f"{names[0]} {last} {literals[0]}"
    rest = _bound(names[1:], literals[1:], beyond, last)
    return f"({names[0]} {beyond}= {literals[0]} AND ({names[0]} {beyond} {literals[0]} OR {rest}))"


def _kind(table: LoggedTable, place: int) -> str:
    kind = table.declared[place].partition("(")[0].split(" ")[0].lower()
    if kind not in _LITERALS:
        raise Unreadable(f"the rows cannot be read in the order of {table.names[place]}, which is a column of the type {kind}")
    return kind


def _stored(value: Any) -> str:
    """A value of a key as the offset has it."""
    match value:
        case bytes():
            return value.hex()
        case Decimal():
            return format(value, "f")
        case datetime.datetime():
            return value.isoformat(" ")
    return str(value)


def _number(value: str) -> str:
    """Raises Unreadable for what is no number."""
    if not value.lstrip("-").replace(".", "", 1).isdecimal():
        raise Unreadable(f"{value!r} is no number")
    return value


def _quoted(value: str) -> str:
    """A text, without characters that mean something in a statement."""
    return f"_utf8mb4 x'{value.encode().hex()}'"


def _bytes(value: str) -> str:
    """Raises ValueError for what is not hexadecimal."""
    return f"x'{bytes.fromhex(value).hex()}'"


_LITERALS: Mapping[str, Literal] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "numeric", "year"), _number),
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "date", "datetime", "timestamp"), _quoted),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), _bytes),
}


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _name(shape: Shape) -> str:
    return f"{shape.database}.{shape.table}"
