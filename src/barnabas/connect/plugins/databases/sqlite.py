"""SQLite, by the library of Python."""

from __future__ import annotations

import datetime
import sqlite3
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar

from barnabas.connect.plugins.databases.address import Address, known_options
from barnabas.connect.plugins.databases.columns import Sort, sort_of
from barnabas.connect.plugins.databases.database import Database
from barnabas.connect.plugins.databases.table_name import TableName

BUSY_S = 10.0  # how long a statement waits for another process that writes


class Sqlite(Database):
    """See the module. Times are texts in ISO 8601, which SQLite's functions read; decimals are texts, because it has no exact numbers."""

    mark, for_update, has_case = "?", "", False
    lost = (sqlite3.OperationalError,)
    refusals = (sqlite3.DataError, sqlite3.IntegrityError)
    errors = (sqlite3.Error,)
    types: ClassVar[Mapping[Sort, str]] = {
        Sort.BOOLEAN: "INTEGER", Sort.INT8: "INTEGER", Sort.INT16: "INTEGER", Sort.INT32: "INTEGER", Sort.INT64: "INTEGER",
        Sort.FLOAT32: "REAL", Sort.FLOAT64: "REAL", Sort.DECIMAL: "TEXT", Sort.STRING: "TEXT", Sort.BYTES: "BLOB",
        Sort.DATE: "TEXT", Sort.TIME: "TEXT", Sort.TIMESTAMP: "TEXT", Sort.JSON: "TEXT",
    }  # fmt: skip

    def _connect(self, address: Address) -> Any:
        known_options(address, {})
        connection = sqlite3.connect(address.database, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL").close()
        return connection

    def begin(self) -> None:
        self.run("BEGIN IMMEDIATE")

    def columns(self, table: TableName) -> dict[str, str] | None:
        schema = "main" if table.schema is None else table.schema
        found = self.run("SELECT name, type FROM pragma_table_xinfo(?, ?)", (table.table, schema))
        return dict(found) or None

    def required(self, table: TableName) -> frozenset[str]:
        schema = "main" if table.schema is None else table.schema
        return frozenset(
            name for (name,) in self.run('SELECT name FROM pragma_table_xinfo(?, ?) WHERE "notnull"', (table.table, schema))
        )

    def incrementing(self, table: TableName) -> str | None:
        found = self.run(
            "SELECT name, type FROM pragma_table_xinfo(?, ?) WHERE pk",
            (table.table, "main" if table.schema is None else table.schema),
        )
        return found[0][0] if len(found) == 1 and found[0][1].upper() == "INTEGER" else None  # that one is the number of the row

    def tables(self, kinds: Sequence[str] = ("TABLE",), schema: str | None = None, catalog: str | None = None) -> list[TableName]:
        del schema, catalog  # a file is one schema
        marks = ", ".join(self.mark * len(kinds))
        found = self.run(
            f"SELECT name FROM sqlite_schema WHERE type IN ({marks}) AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
            [each.lower() for each in kinds],
        )
        return [TableName((name,)) for (name,) in found]

    def column_values(self, column: Any) -> list[Any]:
        values: list[Any] = column.to_pylist()
        match sort_of(column.type):
            case Sort.DECIMAL | Sort.DATE | Sort.TIME | Sort.TIMESTAMP:
                return [None if each is None else text_of(each) for each in values]
        return values


def text_of(value: Decimal | datetime.date | datetime.time) -> str:
    """A value as SQLite's functions read it."""
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    return str(value)
