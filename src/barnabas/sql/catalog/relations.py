"""What a name in FROM can be: a topic with columns, or rows that the engine makes.

Rules
  1. `columns` are what `*` shows; `hidden` are those that a statement must name.
  2. `dataset` is what DuckDB scans. It is made once for each name in a statement, and all of a statement's datasets of a topic see the
     same offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.dataset as ds
from msgspec import Struct

from barnabas.sql.interface import SqlError
from barnabas.sql.states import CANCELLED
from barnabas.tables.scan import EXTRA_FIELDS, META_FIELDS
from barnabas.tables.table import Table

KEY = "_key"
DELETED = "__deleted"  # of a row of an open transaction: whether the transaction deletes it
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
    def key_alias(self) -> str | None:
        """The column that `_key` stands for."""

    @property
    def keys(self) -> Sequence[str]:
        """The columns of the primary key; none without one."""

    @property
    def filled(self) -> Mapping[str, str]:
        """Columns that show an expression instead of null."""


class MemoryRelation(Struct, frozen=True):
    """Rows that the engine has; they are given when the statement runs."""

    name: str
    columns: pa.Schema
    hidden: pa.Schema = pa.schema([])
    key_alias: str | None = None
    keys: tuple[str, ...] = ()
    filled: Mapping[str, str] = {}


class Rows(ds.Dataset):
    """Rows of a topic as DuckDB takes them: it asks for columns, and gives the conditions that the scan can use.

    Args:
        schema: the columns that a statement needs, hidden ones too.
    """

    def __init__(self, table: Table, schema: pa.Schema, is_cancelled: Callable[[], bool]) -> None:
        self._table, self._fields, self._is_cancelled = table, schema, is_cancelled
        self.readings: list[Any] = []

    @property
    def schema(self) -> pa.Schema:
        return self._fields

    def scanner(  # type: ignore[override]  # DuckDB gives no other arguments
        self,
        columns: Sequence[str] | None = None,
        filter: Any = None,  # noqa: A002 - pyarrow's name
        **_: Any,
    ) -> Any:
        reading = self._table.scan(self._fields.names if columns is None else list(columns), filter)
        self.readings.append(reading)
        return _Stopped(reading, self._is_cancelled)


class _Stopped:
    """A reading that ends when its statement is cancelled."""

    def __init__(self, reading: Any, is_cancelled: Callable[[], bool]) -> None:
        self._reading, self._is_cancelled = reading, is_cancelled

    def to_reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self._reading.schema, self._batches())

    def _batches(self) -> Any:
        for batch in self._reading.batches():
            if self._is_cancelled():
                raise SqlError(CANCELLED, "canceling statement due to user request")
            yield batch
