"""Writes records into tables: `io.confluent.connect.jdbc.JdbcSinkConnector`, without a JVM.

A batch is one transaction of the database, with the offsets behind it in a table (`offsets_table.py`). So each record is written exactly
once, whatever dies.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.api import Config, Identity, Sink
from barnabas.connect.errors import BadRecords, ConnectError, RetriableError
from barnabas.connect.plugins.databases.columns import last_of_each, plain_columns
from barnabas.connect.plugins.databases.database import Database, RowsRefused, RowsUnfit
from barnabas.connect.plugins.databases.kinds import connected
from barnabas.connect.plugins.databases.settings import FAMILIES
from barnabas.connect.plugins.databases.table_name import TableName
from barnabas.connect.plugins.sql_sink.bad_records import check, refused
from barnabas.connect.plugins.sql_sink.offsets_table import OffsetsTable
from barnabas.connect.plugins.sql_sink.settings import KEYS, Settings, errors_of, settings_of
from barnabas.connect.plugins.sql_sink.shape import keys_of, rows_of, runs_of
from barnabas.connect.plugins.sql_sink.tables import Tables

Place = tuple[str, int]
Step = Callable[[Database], None]


class SqlSink(Sink):
    """See the module."""

    config = KEYS
    families = FAMILIES

    def __init__(self) -> None:
        self._settings: Settings | None = None
        self._database: Database | None = None
        self._tables: Tables | None = None
        self._offsets: OffsetsTable | None = None
        self._failures = 0

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        return errors_of(config)

    @classmethod
    def settings(cls, config: Config) -> Settings:
        """The settings in a config. Raises ConnectError."""
        return settings_of(config)

    @classmethod
    def alter_offsets(cls, config: Config, offsets: Mapping[Place, int | None]) -> None:
        settings = cls.settings(config)
        database = connected(settings.address, quotes=settings.quotes)
        try:
            if settings.offsets_table is not None:
                table = OffsetsTable(database, settings.offsets_table, settings.connector)
                table.create()
                table.alter(offsets)
                database.commit()
        finally:
            database.close()

    def open(self, config: Config) -> Mapping[Place, int] | None:
        self._settings = self.settings(config)
        self._connect(self._settings)
        if self._offsets is None:
            return None
        self._offsets.create()
        found = self._offsets.read()
        assert self._database is not None
        self._database.rollback()
        return found

    def _connect(self, settings: Settings) -> Database:
        self._database = database = connected(settings.address, quotes=settings.quotes)
        database.batch_size = settings.batch_size
        database.set_zone(settings.timezone)
        self._tables = Tables(database, settings)
        if settings.offsets_table is not None:
            self._offsets = OffsetsTable(database, settings.offsets_table, settings.connector)
        return database

    def write(self, records: pa.Table, identity: Identity) -> None:
        settings = self._settings
        assert settings is not None
        try:
            self._transaction(self._database or self._connect(settings), settings, records, identity)
        except ConnectError as error:
            self._disconnect()
            if not isinstance(error, RetriableError):
                raise
            self._failures += 1
            if self._failures > settings.retries:
                raise ConnectError(f"{error} (tried {self._failures} times)") from error
            raise RetriableError(str(error), after_s=settings.backoff_s) from error
        self._failures = 0

    def _transaction(self, database: Database, settings: Settings, records: pa.Table, identity: Identity) -> None:
        check(records, settings)
        is_mixed = len(pc.unique(records.column("topic"))) > 1
        try:
            steps = self._steps(settings, records, is_mixed=is_mixed)
        except RowsUnfit:
            self._name_refused(database, settings, records, is_mixed=is_mixed)
            raise
        if self._offsets is not None:
            self._offsets.ensure({place: begin for place, (begin, _) in identity.ranges.items()})
        database.commit()  # of new tables, which ends a transaction in MariaDB anyway
        database.begin()
        written: Mapping[Place, int] = {}
        if self._offsets is not None:
            written = self._offsets.read(lock=True)
            if any(written[place] > begin for place, (begin, _) in identity.ranges.items()):
                steps = self._steps(settings, records.filter(_is_new(records, written)), is_mixed=is_mixed)
        try:
            for step in steps:
                step(database)
        except RowsRefused:
            self._name_refused(database, settings, records, is_mixed=is_mixed)
            raise
        if self._offsets is not None:
            ends = {place: max(end, written.get(place, end)) for place, (_, end) in identity.ranges.items()}
            self._offsets.write(ends)  # a task that was overtaken does not take them back
        database.commit()

    def _name_refused(self, database: Database, settings: Settings, records: pa.Table, *, is_mixed: bool) -> None:
        """Raises BadRecords for the records that the database refuses. Nothing of the batch stays."""
        tables = self._tables
        assert tables is not None
        database.rollback()
        database.begin()
        written = {} if self._offsets is None else self._offsets.read(lock=True)
        numbers = _is_new(records, written).to_numpy(zero_copy_only=False).nonzero()[0].tolist()
        wanted = records.take(pa.array(numbers, pa.int64()))

        def write(begin: int, end: int) -> None:
            tables.forget()
            for step in self._steps(settings, wanted.slice(begin, end - begin), is_mixed=is_mixed):
                step(database)

        found = refused(database, len(numbers), write, finds_all=settings.tolerates)
        database.rollback()
        tables.forget()
        if found:
            raise BadRecords({numbers[each]: reason for each, reason in found.items()})

    def _steps(self, settings: Settings, records: pa.Table, *, is_mixed: bool) -> list[Step]:
        """The writes of records, in their order. Their tables are there.

        Args:
            is_mixed: whether the batch has several topics.
        """
        topics: list[Any] = pc.unique(records.column("topic")).to_pylist()
        steps: list[Step] = []
        for topic in topics:
            its = records.filter(pc.equal(records.column("topic"), topic)) if len(topics) > 1 else records
            if settings.insert_mode == "upsert" and settings.deletes:
                keys = plain_columns(keys_of(its, settings))
                its = its.take(last_of_each(keys, keys.column_names))
            table = settings.table_of(str(topic))
            for run, has_values in runs_of(its):
                steps += self._run(settings, table, run, has_values=has_values, is_mixed=is_mixed)
        return steps

    def _run(self, settings: Settings, table: TableName, run: pa.Table, *, has_values: bool, is_mixed: bool) -> list[Step]:
        assert self._tables is not None
        if has_values:
            shaped = rows_of(run, settings, times=settings.time_fields, unit=settings.time_unit)
            fitting = self._tables.fit(table, shaped.rows, shaped.keys, is_mixed=is_mixed)
            return [_writing(settings, table, plain_columns(fitting, settings.timezone), shaped.keys)]
        if not self._tables.is_there(table):
            return []
        keys = plain_columns(keys_of(run, settings), settings.timezone)
        gone = keys.take(last_of_each(keys, keys.column_names))
        return [lambda database: database.delete(table, gone)]

    def _disconnect(self) -> None:
        if self._database is not None:
            with contextlib.suppress(ConnectError):  # it may be broken, and is not used again
                self._database.close()
        self._database = None

    def close(self) -> None:
        self._disconnect()


def _writing(settings: Settings, table: TableName, rows: pa.Table, keys: Sequence[str]) -> Step:
    if settings.insert_mode == "insert":
        return lambda database: database.insert(table, rows)
    last = rows.take(last_of_each(rows, list(keys)))
    if settings.insert_mode == "upsert":
        return lambda database: database.upsert(table, last, keys)
    return lambda database: database.update(table, last, keys)


def _is_new(records: pa.Table, written: Mapping[Place, int]) -> pa.BooleanArray:
    """Whether no other task has written a record."""
    topic = "original_topic" if "original_topic" in records.column_names else "topic"
    places = zip(*(records.column(name).to_pylist() for name in (topic, "partition", "offset")), strict=True)
    return pa.array([offset >= written.get((topic, partition), 0) for topic, partition, offset in places], pa.bool_())
