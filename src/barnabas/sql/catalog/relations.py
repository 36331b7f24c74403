"""The meaning of a name in FROM: a topic with columns, or rows that the engine makes.

Rules
  1. `columns` are what `*` shows; `hidden` are those that a statement must name.
  2. `dataset` is what DuckDB scans. It is made once for each name in a statement, and all of a statement's datasets of a topic see the
     same offsets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.dataset as ds
from msgspec import Struct

from barnabas.errors import BarnabasError
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


class Watch(Protocol):
    """The statement that a scan belongs to."""

    def check(self) -> None:
        """Raises SqlError if it was cancelled."""

    def note(self, fault: BarnabasError) -> None:
        """Take note of an error of the scan."""


class Rows(ds.Dataset):
    """Rows of a topic as DuckDB takes them: it asks for columns, and gives the conditions that the scan can use.

    Args:
        schema: the columns that a statement needs, hidden ones too.
        watch: the statement.
    """

    def __init__(self, table: Table, schema: pa.Schema, watch: Watch) -> None:
        self._table, self._fields, self._watch = table, schema, watch
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
        return _Watched(reading, self._watch)


class _Watched:
    """A reading that ends when its statement is cancelled, and that keeps its error: DuckDB passes on the text alone."""

    def __init__(self, reading: Any, watch: Watch) -> None:
        self._reading, self._watch = reading, watch

    def to_reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self._reading.schema, self._batches())

    def _batches(self) -> Any:
        try:
            for batch in self._reading.batches():
                self._watch.check()
                yield batch
        except BarnabasError as error:
            self._watch.note(error)
            raise
