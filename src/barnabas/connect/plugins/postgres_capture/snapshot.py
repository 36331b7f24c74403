"""The rows of the captured tables, as of the moment at which a slot begins."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
from pyarrow import csv

from barnabas.connect.api import Batch
from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.postgres_capture.catalog import Catalog, one_line, quoted
from barnabas.connect.plugins.postgres_capture.cells import NoRows, TableRows
from barnabas.connect.plugins.postgres_capture.events import Events, Places, records_of
from barnabas.connect.plugins.postgres_capture.settings import Settings
from barnabas.connect.plugins.postgres_capture.shape import Shape
from barnabas.connect.plugins.postgres_capture.stream import Consistent

ROWS, BYTES = 10_000, 16 << 20  # of a batch


class Snapshot:
    """Reads tables.

    Args:
        at: the slot whose snapshot it reads.
        clock_us: the time.
    """

    def __init__(self, settings: Settings, catalog: Catalog, at: Consistent, clock_us: Callable[[], int]) -> None:
        self._settings, self._catalog, self._at, self._clock_us = settings, catalog, at, clock_us
        self._xid = self._time_us = 0  # of all rows

    def batches(
        self, shapes: Sequence[Shape], done: Mapping[str, int], begin_lsn: int, partition: Mapping[str, Any]
    ) -> Iterator[Batch]:  # fmt: skip
        """The rows of tables.

        The batches of a table with a key have offsets, so after a kill the table is read again from its beginning, as of then. All changes
        since `begin_lsn` follow, so the last state of each key is right. A table without a key is one transaction; changes that its
        snapshot has are left out later (`slot_batches.py`).

        Args:
            done: tables that are in the log, with the places of their snapshots.
            begin_lsn: where the stream will begin.
        """
        tables = {**done}
        waiting = [shape for shape in shapes if _name(shape) not in done]
        run = self._catalog.run
        run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        run(f"SET TRANSACTION SNAPSHOT '{self._at.snapshot}'")
        [(self._xid,)] = run("SELECT txid_snapshot_xmax(txid_current_snapshot())")
        self._time_us = self._clock_us()
        for shape in waiting:
            is_last = shape is waiting[-1]
            last: Batch | None = None
            for batch in self._table(shape, is_first=shape is shapes[0], is_last=is_last):
                if last is not None:
                    yield last
                pending = {"snapshot": True, "lsn": begin_lsn, "tables": dict(tables)}
                last = Batch(
                    batch, pending if shape.key else None, partition, topic=shape.topic, is_records=True
                )  # fmt: skip
            tables[_name(shape)] = self._at.lsn
            if not is_last:
                yield self._ended(shape, last, {"snapshot": True, "lsn": begin_lsn, "tables": dict(tables)}, partition)
            else:
                without_key = {_name(each) for each in shapes if not each.key}
                later = {name: lsn for name, lsn in tables.items() if lsn > begin_lsn and name in without_key}
                yield self._ended(shape, last, {"lsn": begin_lsn, **({"tables": later} if later else {})}, partition)
        run("COMMIT")
        if not waiting:
            yield Batch([], {"lsn": begin_lsn}, partition)

    @staticmethod
    def _ended(shape: Shape, last: Batch | None, offset: Mapping[str, Any], partition: Mapping[str, Any]) -> Batch:
        rows: Any = [] if last is None else last.rows
        return Batch(rows, offset, partition, topic=shape.topic, is_records=last is not None)

    def _table(self, shape: Shape, *, is_first: bool, is_last: bool) -> Iterator[pa.Table]:
        """The records of a table, which may be the first or the last one of the snapshot."""
        relation = shape.relation
        names = ", ".join(quoted(each.name) for each in relation.columns)
        if not names:
            return
        source = f"SELECT {names} FROM ONLY {quoted(relation.schema)}.{quoted(relation.table)}"
        try:
            statement = f"COPY ({source}) TO STDOUT (FORMAT csv, FORCE_QUOTE *)".encode()
            with self._catalog.connection.cursor() as cursor, cursor.copy(statement) as copy:
                waiting: tuple[TableRows, str] | None = None  # rows, and the word of the first one
                word = "first" if is_first else "first_in_data_collection"
                for data in _parts(copy):
                    if waiting is not None:
                        yield self._records(shape, *waiting, "true")
                    waiting, word = (rows_of(data, len(relation.columns)), word), "true"
        except psycopg.Error as error:
            raise ConnectError(f"{self._catalog.place} does not give the rows of {_name(shape)}: {one_line(error)}") from error
        if waiting is not None:
            yield self._records(shape, *waiting, "last" if is_last else "last_in_data_collection")

    def _records(self, shape: Shape, rows: TableRows, first: str, last: str) -> pa.Table:
        """The records of rows.

        Args:
            first, last: Debezium's words for where the first and the last one are in the snapshot. A row that is both the first one of all
                and the last one of its table is the first one.
        """
        count = rows.table.num_rows
        words = [first, *["true"] * (count - 1)]
        if last == "last" or (last != "true" and words[-1] != "first"):
            words[-1] = last
        at = Places(*(np.full(count, each) for each in (self._at.lsn, -1, self._xid, self._time_us)))
        events = Events(np.zeros(count, np.int8), NoRows(count), rows, rows, at, pa.array(words, pa.string()))
        return records_of(shape, events, self._settings, self._clock_us())


def _parts(copy: psycopg.Copy) -> Iterator[bytes]:
    """Lines of CSV, many at a time."""
    lines, size = list[bytes](), 0
    for line in copy:
        lines.append(bytes(line))
        size += len(lines[-1])
        if len(lines) == ROWS or size >= BYTES:
            yield b"".join(lines)
            lines, size = [], 0
    if lines:
        yield b"".join(lines)


def rows_of(data: bytes, columns: int) -> TableRows:
    """The rows in CSV, in which all values but null have quotes."""
    names = [str(each) for each in range(columns)]
    table = csv.read_csv(
        io.BytesIO(data),
        read_options=csv.ReadOptions(column_names=names, block_size=max(1 << 20, len(data) + 1)),
        parse_options=csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.binary()), null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )  # fmt: skip
    return TableRows(table)


def _name(shape: Shape) -> str:
    return f"{shape.relation.schema}.{shape.relation.table}"
