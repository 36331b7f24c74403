"""DuckDB. Rows go through Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import duckdb
import pyarrow as pa

from barnabas.connect.plugins.databases.address import Address
from barnabas.connect.plugins.databases.columns import Sort
from barnabas.connect.plugins.databases.database import Database, Rows
from barnabas.connect.plugins.databases.table_name import TableName

ROWS = "barnabas_rows"  # the name of the rows in a statement


class Duckdb(Database):
    """See the module. One process at a time may have a file open."""

    mark, for_update, has_case = "?", "", False
    lost = (duckdb.IOException, duckdb.TransactionException, duckdb.ConnectionException)
    errors = (duckdb.Error,)
    types: ClassVar[Mapping[Sort, str]] = {
        Sort.BOOLEAN: "BOOLEAN", Sort.INT8: "TINYINT", Sort.INT16: "SMALLINT", Sort.INT32: "INTEGER", Sort.INT64: "BIGINT",
        Sort.FLOAT32: "FLOAT", Sort.FLOAT64: "DOUBLE", Sort.DECIMAL: "DECIMAL(38,9)", Sort.STRING: "VARCHAR", Sort.BYTES: "BLOB",
        Sort.DATE: "DATE", Sort.TIME: "TIME", Sort.TIMESTAMP: "TIMESTAMP", Sort.JSON: "JSON",
    }  # fmt: skip

    def _connect(self, address: Address) -> Any:
        return duckdb.connect(address.database, config=dict(address.options))

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> Rows:
        """As `Database.run`; without a cursor, because one of DuckDB is a connection with transactions of its own."""
        with self.translated():
            done = self.connection.execute(statement, tuple(parameters))
            return done.fetchall() if done.description else []

    def run_many(self, statement: str, rows: Rows) -> None:
        if rows:
            with self.translated():
                self.connection.executemany(statement, list(rows))

    def begin(self) -> None:
        self.run("BEGIN")

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """It has none, and refuses no rows by `refusals`. What does not fit was not written."""
        yield

    def commit(self) -> None:
        self._end("COMMIT")

    def rollback(self) -> None:
        self._end("ROLLBACK")

    def _end(self, statement: str) -> None:
        """DuckDB has no transaction before `begin`: statements commit themselves."""
        with self.translated():
            try:
                self.connection.execute(statement)
            except duckdb.TransactionException as error:
                if "no transaction is active" not in str(error):
                    raise

    def decimal(self, kind: Any) -> str:
        return f"DECIMAL({min(kind.precision, 38)},{kind.scale})"

    def columns(self, table: TableName) -> dict[str, str] | None:
        found = self.run(
            "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = ? "
            "AND table_schema = coalesce(?, current_schema()) AND table_catalog = current_database() ORDER BY ordinal_position",
            (table.table, table.schema),
        )
        return dict(found) or None

    def incrementing(self, table: TableName) -> str | None:
        found = self.run(
            "SELECT column_name FROM information_schema.columns WHERE table_name = ? AND table_schema = coalesce(?, current_schema()) "
            "AND table_catalog = current_database() AND column_default LIKE 'nextval(%' ORDER BY ordinal_position",
            (table.table, table.schema),
        )
        return found[0][0] if found else None

    def _insert_or(self, table: TableName, rows: pa.Table, conflict: str) -> None:
        names = self.names(rows.column_names)
        self._with(rows, f"INSERT INTO {self.table(table)} ({names}) SELECT {names} FROM {ROWS} {conflict}")

    def update(self, table: TableName, rows: pa.Table, keys: Sequence[str]) -> None:
        others = [each for each in rows.column_names if each not in keys]
        if others:
            sets = ", ".join(f"{self.name(each)} = {ROWS}.{self.name(each)}" for each in others)
            self._with(rows, f"UPDATE {self.table(table)} AS old SET {sets} FROM {ROWS} WHERE {self._same(keys)}")

    def delete(self, table: TableName, keys: pa.Table) -> None:
        self._with(keys, f"DELETE FROM {self.table(table)} AS old USING {ROWS} WHERE {self._same(keys.column_names)}")

    def _same(self, keys: Sequence[str]) -> str:
        return " AND ".join(f"old.{self.name(each)} = {ROWS}.{self.name(each)}" for each in keys)

    def _with(self, rows: pa.Table, statement: str) -> None:
        with self.translated():
            self.connection.register(ROWS, rows)
            try:
                self.connection.execute(statement)
            finally:
                self.connection.unregister(ROWS)
