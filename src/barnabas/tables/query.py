"""Conditions and columns of SQL text over one table, run by DuckDB without a copy of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import duckdb
import pyarrow as pa

from barnabas.errors import BarnabasError
from barnabas.tables.dataset import TopicDataset
from barnabas.tables.errors import TableError
from barnabas.tables.explanation import Explanation
from barnabas.tables.reading import Reading
from barnabas.tables.table import Table

BATCH_ROWS = 65_536


class BadText(TableError):
    """SQL text that DuckDB does not understand; `part` is `select` or `where`."""

    def __init__(self, part: str, reason: str) -> None:
        super().__init__(reason)
        self.part = part


class Query:
    """The rows of a table that a condition lets through, with the columns that are asked for. One use of its rows.

    Args:
        select: a list of SQL expressions, such as `id, upper(name) as name`; None: all columns.
        where: a condition in SQL; None: all rows.
        limit: rows to give; None: all.

    Raises:
        BadText: DuckDB does not understand the text.
        TableError, ClientError, CorruptLog: the table cannot be read.
    """

    def __init__(self, table: Table, select: str | None = None, where: str | None = None, limit: int | None = None) -> None:
        self._watched = _Watched(table)
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._reader: pa.RecordBatchReader | None = None
        if select is None and where is None:
            self.schema = self._watched.scan(limit=limit).schema
            return
        self._connection = duckdb.connect()
        self._connection.execute("SET GLOBAL TimeZone = 'UTC'")  # DuckDB's default is the zone of the machine
        try:
            self._reader = self._run(self._connection, select, where, limit)
        except duckdb.Error as error:
            self.close()
            raise self._watched.fault or TableError(_reason(error)) from error
        self.schema = self._reader.schema

    def _run(
        self, connection: duckdb.DuckDBPyConnection, select: str | None, where: str | None, limit: int | None
    ) -> pa.RecordBatchReader:
        connection.execute("set timezone = 'UTC'")
        relation = connection.from_arrow(self._watched)
        if where is not None:
            relation = _understood("where", relation.filter, where)
        if select is not None:
            relation = _understood("select", relation.project, select)
        if limit is not None:
            relation = relation.limit(limit)
        reader: pa.RecordBatchReader = relation.to_arrow_reader(BATCH_ROWS)
        return reader

    def __enter__(self) -> Query:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the reading; safe to call twice."""
        self._reader = None
        if self._connection is not None:
            self._connection.close()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows. Raises TableError, BadRecord, ClientError, CorruptLog."""
        if self._reader is None:
            if self._watched.reading is not None:
                yield from self._watched.reading.batches()
            return
        try:
            yield from self._reader
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise self._watched.fault or TableError(_reason(error)) from error

    def explain(self) -> Explanation | None:
        """The account of the reading; None if the query needs none of its rows."""
        return None if self._watched.reading is None else self._watched.reading.explain()


class _Watched(TopicDataset):
    """The table as DuckDB sees it. It keeps the last reading, for its account, and the error of the table that ended the query: DuckDB
    passes on the text of an error alone."""

    def __init__(self, table: Table) -> None:
        super().__init__(table.schema)
        self._table = table
        self.reading: Reading | None = None
        self._fault: BarnabasError | None = None

    @property
    def schema(self) -> pa.Schema:
        return self._table.schema

    @property
    def fault(self) -> BarnabasError | None:
        return self._fault or (self.reading.fault if self.reading is not None else None)

    def scan(self, *arguments: Any, **named: Any) -> Reading:
        try:
            self.reading = self._table.scan(*arguments, **named)
        except BarnabasError as error:
            self._fault = error
            raise
        return self.reading


def _understood(part: str, apply: Callable[[str], duckdb.DuckDBPyRelation], text: str) -> duckdb.DuckDBPyRelation:
    """The relation that DuckDB makes of a text. Raises BadText."""
    try:
        relation = apply(text)
        _ = relation.columns  # names are resolved now
    except (duckdb.Error, ValueError) as error:
        raise BadText(part, _reason(error)) from error
    return relation


def _reason(error: Exception) -> str:
    """The text of an error of DuckDB, without the kind of error and the picture of the statement."""
    text = str(error).split("\n\nLINE", 1)[0].strip()
    return " ".join(text.split()) or type(error).__name__
