"""Captures the changes of MariaDB and MySQL: `io.debezium.connector.mariadb.MariaDbConnector` and `…mysql.MySqlConnector`, without a JVM.

The snapshot is one transaction, and the server tells the place in its binary log that belongs to it. So no change is lost between them.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from typing import Any, ClassVar

from pymysqlreplication.constants.NONE_SOURCE import EMPTY_SET
from pymysqlreplication.event import QueryEvent, XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, TableMapEvent, UpdateRowsEvent, WriteRowsEvent

from barnabas.connect.api import Batch, Config, Offset, Source
from barnabas.connect.plugins.debezium.envelope import READ, TRUNCATE
from barnabas.connect.plugins.debezium.heartbeats import Heartbeats
from barnabas.connect.plugins.debezium.settings import REST_S
from barnabas.connect.plugins.debezium.signals import Reading, signal_errors
from barnabas.connect.plugins.debezium.unsupported import unsupported
from barnabas.connect.plugins.mysql_capture.chunks import Chunks
from barnabas.connect.plugins.mysql_capture.events import Event, Row, Shape, records_of
from barnabas.connect.plugins.mysql_capture.log_batches import LogBatches
from barnabas.connect.plugins.mysql_capture.log_reader import LogReader
from barnabas.connect.plugins.mysql_capture.logged import LoggedTable, right_time, table_of, times_of, truncated
from barnabas.connect.plugins.mysql_capture.server import Server, shape_of, translated
from barnabas.connect.plugins.mysql_capture.settings import IDLE, KEYS, Settings, settings_of

ROWS, BYTES = 10_000, 16 << 20  # of a batch; the last event may go beyond
SNAPSHOTS = ("initial", "initial_only")
_WITHIN = re.compile(
    r"\s*(?:BEGIN|SAVEPOINT|RELEASE|ROLLBACK\s+(?:WORK\s+)?TO|XA\s+(?:START|BEGIN|END|PREPARE))\b", re.IGNORECASE
)  # ends no transaction
_ALTERS = re.compile(r"\b(?:ALTER|CREATE|RENAME|DROP)\b", re.IGNORECASE)


class MysqlCapture(Source):
    """See the module."""

    config = KEYS
    idle: ClassVar[Mapping[str, str]] = IDLE

    def __init__(self) -> None:
        self._closed = threading.Event()

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        return {**unsupported(config), **signal_errors(config)}

    def read(self, config: Config, offsets: Sequence[tuple[Mapping[str, Any], Offset]]) -> Iterator[Batch | None]:
        settings = settings_of(config)
        partition = {"server": settings.prefix}
        known = next((dict(offset) for name, offset in offsets if name == partition), None)
        with closing(Server(settings)) as server:
            server.check()
            offset = yield from _snapshot(settings, server, partition, known)
            if settings.snapshot == "initial_only":
                return
            beats = Heartbeats(config, server.run)
            yield from self._stream(settings, server, partition, offset, beats)

    def close(self) -> None:
        self._closed.set()

    def _stream(
        self, settings: Settings, server: Server, partition: Mapping[str, Any], offset: Mapping[str, Any], beats: Heartbeats
    ) -> Iterator[Batch]:  # fmt: skip
        signals = settings.signals
        chunks = None if signals is None else Chunks(settings, server, Reading(offset), signals)

        def shape(table: LoggedTable) -> Shape:
            server.revive()  # it may not have been used for hours
            return shape_of(table, settings, server.defaults(table))

        batches = LogBatches(settings, offset, shape, chunks)
        with (
            closing(chunks) if chunks is not None else nullcontext(),
            translated(settings, "does not send its binary log"), closing(LogReader(settings, offset)) as reader,
        ):  # fmt: skip
            size, taken_s = 0, 0.0
            for event in reader:
                if self._closed.is_set():
                    return
                _receive(batches, event, reader.place, settings, server)
                size += event.event_size
                if chunks is not None and not batches.is_open:
                    batches.is_news |= chunks.go_on()
                is_full = batches.rows >= ROWS or size >= BYTES
                rest_s = 0.0 if chunks is not None and chunks.window is not None else REST_S
                if (batches.rows or batches.is_news) and (
                    is_full or (not batches.is_open and self._is_last(reader, taken_s + rest_s))
                ):
                    yield from batches.take(partition, _now_us())
                    size, taken_s = 0, time.monotonic()
                if beats.is_due() and not batches.rows:
                    yield beats.beat(batches.offset(), partition)

    def _is_last(self, reader: LogReader, until_s: float) -> bool:
        """Whether no more has come, and no more comes until a time."""
        if reader.has_more():
            return False
        rest_s = until_s - time.monotonic()
        return rest_s <= 0 or self._closed.wait(rest_s) or not reader.has_more()


def _receive(batches: LogBatches, event: Any, place: tuple[str, int], settings: Settings, server: Server) -> None:
    match event:
        case TableMapEvent():
            batches.table_is(event.table_id, table_of(event))
        case WriteRowsEvent() | UpdateRowsEvent() | DeleteRowsEvent() if not batches.is_captured(event.table_id):
            batches.skip(len(event.rows))
        case WriteRowsEvent() | UpdateRowsEvent() | DeleteRowsEvent():
            names, times = [each.name for each in event.columns], times_of(event.columns)
            changes = [_change(each, names, times, is_delete=isinstance(event, DeleteRowsEvent)) for each in event.rows]
            batches.rows_changed(event.table_id, changes, _at(event, place))
        case XidEvent():
            batches.ended(place)
        case QueryEvent():
            _receive_statement(batches, event, place, settings, server)


def _receive_statement(batches: LogBatches, event: Any, place: tuple[str, int], settings: Settings, server: Server) -> None:
    """A statement is BEGIN, the end of a transaction, or one that changes tables and is a transaction of its own."""
    query, database = _text(event.query), _text(event.schema)
    if _WITHIN.match(query):
        return
    if _ALTERS.search(query):
        batches.forget_shapes()
    emptied = truncated(query, database)
    if emptied is not None and settings.takes(*emptied) and TRUNCATE not in settings.skipped and not settings.is_flat:
        batches.table_truncated(server.shape(*emptied), _at(event, place))
    batches.ended(place)


def _at(event: Any, place: tuple[str, int]) -> Event:
    """An event with its place and time."""
    return Event("", None, None, *place, server_id=event.packet.server_id, time_us=event.timestamp * 1_000_000)


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def _change(
    row: Mapping[str, Any], names: Sequence[str], times: frozenset[str], *, is_delete: bool
) -> tuple[Row | None, Row | None]:  # fmt: skip
    """The rows before and after of a change.

    Args:
        times: columns whose values the library reads wrongly.
    """

    def of(values: Mapping[str, Any] | None, sources: Mapping[str, str] | None) -> Row | None:
        if values is None:
            return None
        if times:
            values = {name: right_time(value) if name in times else value for name, value in values.items()}
        if sources and EMPTY_SET in sources.values():  # the library gives None for it, as for a null
            return tuple("" if sources.get(name) == EMPTY_SET else values[name] for name in names)
        return tuple(values[name] for name in names)

    if "values" in row:
        only = of(row["values"], row.get("none_sources"))
        return (only, None) if is_delete else (None, only)
    return of(row["before_values"], row.get("before_none_sources")), of(row["after_values"], row.get("after_none_sources"))


def _snapshot(
    settings: Settings, server: Server, partition: Mapping[str, Any], known: Mapping[str, Any] | None
) -> Generator[Batch, None, Mapping[str, Any]]:
    """Read the tables if that is wanted; the offset from which the binary log is read."""
    is_begun = known is not None and bool(known.get("snapshot"))
    if known is not None and not is_begun:
        return known
    if not is_begun and settings.snapshot not in SNAPSHOTS:
        file, pos = server.position()
        return {"file": file, "pos": pos}
    file, pos = server.begin_snapshot()
    begin = {"file": known["file"], "pos": known["pos"]} if known is not None else {"file": file, "pos": pos}
    done: dict[str, Any] = dict(known["tables"]) if known is not None else {}
    without_key = set[str]()
    for shape in server.shapes():
        name = f"{shape.database}.{shape.table}"
        if name == settings.signals:
            continue
        without_key |= set() if shape.key else {name}
        if name in done:
            continue
        for rows in server.rows(shape, ROWS):
            now_us = _now_us()
            events = [Event(READ, None, tuple(row), file, pos, time_us=now_us, snapshot="true") for row in rows]
            pending = {"snapshot": True, **begin, "tables": dict(done)} if shape.key else None
            yield Batch(
                records_of(shape, events, settings, now_us),
                pending,
                partition,
                topic=settings.topic(shape.database, shape.table),
                is_records=True,
            )
        done[name] = [file, pos]
        yield Batch([], {"snapshot": True, **begin, "tables": dict(done)}, partition)
    server.run("COMMIT")
    later = {name: place for name, place in done.items() if name in without_key and place != [begin["file"], begin["pos"]]}
    offset = begin | ({"tables": later} if later else {})
    yield Batch([], offset, partition)
    return offset


def _now_us() -> int:
    return time.time_ns() // 1000
