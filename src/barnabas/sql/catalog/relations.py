"""What a name in FROM can be: a topic with columns, or rows that the engine makes.

Rules
  1. `columns` are what `*` shows; `hidden` are those that a statement must name.
  2. `dataset` is what DuckDB scans. It is made once for each name in a statement, and all of a statement's datasets of a topic see the
     same offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.dataset as ds

from barnabas.sql.interface import SqlError
from barnabas.sql.states import CANCELLED
from barnabas.tables.scan import EXTRA_FIELDS, META_FIELDS
from barnabas.tables.table import Table

KEY = "_key"
META: tuple[pa.Field[Any], ...] = (*META_FIELDS, *EXTRA_FIELDS)


class Relation(Protocol):
    """A table that a statement can name."""

    @property
    def name(self) -> str: ...

    @property
    def columns(self) -> pa.Schema:
        """The columns of `*`."""

    @property
    def hidden(self) -> pa.Schema:
        """The columns that only a statement that names them sees."""

    @property
    def key(self) -> Sequence[str]:
        """The columns of the primary key; a reader sees the newest row of each. None without one."""

    @property
    def key_alias(self) -> str | None:
        """The column that `_key` stands for."""


class Rows(ds.Dataset):
    """Rows that are made as DuckDB takes them, with the columns that it asks for."""

    def __init__(self, schema: pa.Schema, read: Callable[[Sequence[str]], Iterator[pa.RecordBatch]]) -> None:
        self._fields, self._read = schema, read

    @property
    def schema(self) -> pa.Schema:
        return self._fields

    def scanner(self, columns: Sequence[str] | None = None, filter: Any = None, **_: Any) -> ds.Scanner:  # noqa: A002 - pyarrow's name
        wanted = self._fields.names if columns is None or filter is not None else list(columns)
        schema = pa.schema([self._fields.field(name) for name in wanted])
        return ds.Scanner.from_batches(self._read(wanted), schema=schema, columns=columns, filter=filter)


def empty(schema: pa.Schema) -> pa.Table:
    """A table without rows, to check statements against."""
    return schema.empty_table()


def rows_of(table: Table, schema: pa.Schema, is_cancelled: Callable[[], bool]) -> Rows:
    """A topic's rows, at the table's snapshot."""

    def read(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in table.batches(names):
            if is_cancelled():
                raise SqlError(CANCELLED, "canceling statement due to user request")
            yield batch

    return Rows(schema, read)
