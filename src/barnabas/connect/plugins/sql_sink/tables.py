"""Makes the tables fit to the rows: creates tables and adds columns, where the config allows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.databases.database import Database, RowsUnfit
from barnabas.connect.plugins.databases.table_name import TableName
from barnabas.connect.plugins.sql_sink.settings import Settings


class Tables:
    """The tables of a sink, as far as it has seen them."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database, self._settings = database, settings
        self._columns: dict[TableName, set[str]] = {}

    def forget(self) -> None:
        """Look at the tables again: changes of them were undone."""
        self._columns.clear()

    def is_there(self, table: TableName) -> bool:
        """Whether there is such a table."""
        return self._known(table) is not None

    def fit(self, table: TableName, rows: pa.Table, keys: Sequence[str], *, is_mixed: bool) -> pa.Table:
        """The columns of the rows that the table has then.

        Args:
            is_mixed: whether the batch has several topics: then rows have the fields of all of them, and those of others are null.

        Raises:
            ConnectError: the table is missing, and the config does not allow to make it.
            RowsUnfit: a column is missing, and the config does not allow to add it.
        """
        known = self._known(table)
        absent = [name for name in rows.column_names if known is None or self._folded(name) not in known]
        empty = [name for name in absent if name not in keys and _is_empty(rows.column(name), is_mixed=is_mixed)]
        rows = rows.drop_columns(empty)
        absent = [name for name in absent if name not in empty]
        if known is None:
            if not self._settings.creates:
                raise ConnectError(f"Table {table} is missing and auto-creation is disabled: set auto.create=true, or create it")
            self._database.create(table, rows.schema, keys)
        elif absent:
            if not self._settings.evolves:
                raise RowsUnfit(
                    f"Table {table} is missing fields ({', '.join(absent)}) and auto-evolution is disabled: "
                    "set auto.evolve=true, or add them"
                )
            if wrong := [name for name in absent if name in keys]:
                raise RowsUnfit(f"Table {table} lacks the column {wrong[0]} of the primary key, which cannot be added")
            self._database.add_columns(table, rows.select(absent).schema)
        if known is None or absent:
            self._columns.pop(table, None)
        return rows

    def _known(self, table: TableName) -> set[str] | None:
        if table not in self._columns:
            found = self._database.columns(table)
            if found is None:
                return None
            self._columns[table] = {self._folded(name) for name in found}
        return self._columns[table]

    def _folded(self, name: str) -> str:
        return name if self._settings.quotes and self._database.has_case else name.lower()


def _is_empty(column: Any, *, is_mixed: bool) -> bool:
    """Whether a column that the table lacks has nothing to write: then its type may be unknown too."""
    return pa.types.is_null(column.type) or (is_mixed and column.null_count == len(column))
