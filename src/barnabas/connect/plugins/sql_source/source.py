"""Reads rows of tables, or of a query: `io.confluent.connect.jdbc.JdbcSourceConnector`, without a JVM.

A batch ends where the next row has another position, so a source that goes on there leaves out no row and reads none twice.
"""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import closing
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from barnabas.connect.api import Batch, Config, Offset, Source
from barnabas.connect.errors import ConnectError
from barnabas.connect.java_patterns import java_pattern
from barnabas.connect.plugins.databases.database import Database
from barnabas.connect.plugins.databases.kinds import connected
from barnabas.connect.plugins.databases.reading import parts_of
from barnabas.connect.plugins.databases.settings import FAMILIES
from barnabas.connect.plugins.databases.table_name import OFFSETS, TableName, table_name
from barnabas.connect.plugins.sql_source import queries
from barnabas.connect.plugins.sql_source.chosen_columns import of_table
from barnabas.connect.plugins.sql_source.numbers import mapped
from barnabas.connect.plugins.sql_source.position import EPOCH, Position, position_of
from barnabas.connect.plugins.sql_source.settings import BULK, KEYS, OTHERS, TABLES, Settings, errors_of, settings_of
from barnabas.connect.plugins.sql_source.times import with_times

QUERY = {"query": "query"}  # the partition of a query


class SqlSource(Source):
    """See the module."""

    config = KEYS
    families = FAMILIES

    def __init__(self) -> None:
        self._closed = threading.Event()

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        return errors_of(config)

    @classmethod
    def tasks(cls, config: Config, most: int) -> list[Mapping[str, str]]:
        settings = settings_of(config)
        if settings.query:
            return [{}]
        with closing(connected(settings.address, quotes=settings.quotes)) as database:
            names = [str(each) for each in _tables(database, settings)]
        count = max(1, min(most, len(names)))
        if count == 1:
            return [{}]
        tasks: list[dict[str, str]] = [{TABLES: ",".join(names[at::count])} for at in range(count)]
        if not settings.whitelist:  # the first task also takes tables that are added
            tasks[0][OTHERS] = ",".join(each for each in names if each not in names[::count])
        return list(tasks)

    def read(self, config: Config, offsets: Sequence[tuple[Mapping[str, Any], Offset]]) -> Iterator[Batch | None]:
        settings = settings_of(config)
        positions = {_name(partition): position_of(offset) for partition, offset in offsets}
        with closing(connected(settings.address, quotes=settings.quotes)) as database:
            queries.begin(database, settings)
            tables, looked_s = list[TableName](), -settings.tables_poll_s
            own: dict[TableName | None, Settings] = {None: settings}
            while not self._closed.is_set():
                if not settings.query and time.monotonic() - looked_s >= settings.tables_poll_s:
                    tables, looked_s = _tables(database, settings), time.monotonic()
                    own |= {each: of_table(database, settings, each) for each in tables if each not in own}
                for table in [None] if settings.query else tables:
                    partition = QUERY if table is None else {"protocol": "1", "table": str(table)}
                    topic = settings.prefix + ("" if table is None else table.table)
                    begin = positions.get(_name(partition)) or _start(own[table])
                    for rows, position in _polled(database, own[table], table, begin):
                        if position is not None:
                            positions[_name(partition)] = position
                        offset = None if position is None else position.offset
                        yield Batch(rows, offset, partition, topic=topic, name=None if table is None else table.table)
                database.rollback()
                self._closed.wait(settings.poll_s)

    def close(self) -> None:
        self._closed.set()


def _name(partition: Mapping[str, Any]) -> str:
    return str(partition.get("table", ""))


def _start(settings: Settings) -> Position:
    """Where a table without an offset begins."""
    if settings.initial_ms is None or not settings.timestamps:
        return Position()
    at_ms = time.time_ns() // 1_000_000 if settings.initial_ms == -1 else settings.initial_ms
    return Position(None, EPOCH + datetime.timedelta(milliseconds=at_ms))


def _tables(database: Database, settings: Settings) -> list[TableName]:
    """The tables of a connector, or of a task. One with the offsets of sinks is no data, unless it is named."""
    if settings.whitelist or (settings.tables and not settings.others):
        return [table_name(each) for each in settings.tables or settings.whitelist]
    found = database.tables(settings.kinds, settings.schema, settings.catalog)
    return [
        each for each in found
        if each.table != OFFSETS and str(each) not in settings.others and _is_wanted(str(each), settings)
    ]  # fmt: skip


def _is_wanted(name: str, settings: Settings) -> bool:
    """Whether the lists of the config let a table be read; patterns fit to the name with or without what stands before it."""
    names = settings.names_of(name)

    def fits(patterns: Sequence[str]) -> bool:
        return any(java_pattern(pattern).fullmatch(each) for pattern in patterns for each in names)

    is_included = fits(settings.includes) if settings.includes else True
    return is_included and not fits(settings.excludes) and settings.blacklist.isdisjoint(names)


def _polled(
    database: Database, settings: Settings, table: TableName | None, position: Position
) -> Iterator[tuple[pa.Table, Position | None]]:
    """The rows of one poll, part by part, with the position behind each; None within rows that belong together."""
    end = queries.end_of(database, settings) if settings.timestamps else None
    statement, parameters = queries.statement_of(database, settings, table, position, end)
    declared = (database.columns(table) or {}) if table is not None else {}
    required = frozenset[str]() if table is None else database.required(table)
    last: tuple[pa.Table, Position] | None = None
    for read in parts_of(database, statement, parameters, settings.rows, declared, ZoneInfo(settings.timezone)):
        part = mapped(read, settings.numbers)
        found = part, _behind(part, settings, 0), _behind(part, settings, part.num_rows - 1)
        if last is not None:
            is_apart = settings.mode != BULK and found[1] != last[1]
            yield _typed(last[0], settings, required), last[1] if is_apart else None
        last = part, found[2]
    if last is not None:
        yield _typed(last[0], settings, required), last[1]


def _typed(rows: pa.Table, settings: Settings, required: Set[str]) -> pa.Table:
    """The rows in the form that the config wants.

    Args:
        required: columns that are never null, as the table says.
    """
    found = with_times(rows, settings.granularity)
    fields = [
        each.with_nullable(each.name not in required or bool(column.null_count))
        for each, column in zip(found.schema, found.columns, strict=True)
    ]
    return pa.Table.from_arrays(found.columns, schema=pa.schema(fields))


def _behind(part: pa.Table, settings: Settings, row: int) -> Position:
    """The position behind a row. Raises ConnectError for a row without one."""
    number, time = None, None
    if settings.incrementing:
        number = _value(part, settings.incrementing, row)
        if number is None:
            raise ConnectError(f"the incrementing column {settings.incrementing} of a row is null")
        number = int(number)
    if settings.timestamps:
        values = (_value(part, name, row) for name in settings.timestamps)
        time = queries.time_of(next((each for each in values if each is not None), None), settings)
    return Position(number, time)


def _value(part: pa.Table, name: str, row: int) -> Any:
    if name not in part.column_names:
        raise ConnectError(f"the rows have no column {name}; they have {', '.join(part.column_names)}")
    return part.column(name)[row].as_py()
