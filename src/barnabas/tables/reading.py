"""A reading of a table: the rows of a scan, with the whole filter applied.

Owns the exact filter, the order of the columns, the limit, and the account of a reading. It has the methods of a
`pyarrow.dataset.Scanner` that libraries use.

Rules
  1. A scan may give too many rows; the filter is applied to every batch. For libraries a pushed filter is done.
  2. A reading that ends early is closed as a generator, and the scan then releases its connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.errors import BarnabasError
from barnabas.tables import arrow_filter
from barnabas.tables.errors import TableError
from barnabas.tables.explanation import Explanation
from barnabas.tables.expression import columns_in, predicate_of
from barnabas.tables.newest import NewestRows
from barnabas.tables.predicate import Every, Predicate, Unknown
from barnabas.tables.scan import META_FIELDS, Columns, ScanReport

BY_POSITION = "FieldPath("  # in the text of an expression that names columns by their position


class Rows(Protocol):
    """Rows for which a predicate may hold: a `Scan`, or the newest rows of a scan."""

    schema: pa.Schema
    report: ScanReport

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows."""

    def count(self) -> int:
        """The number of rows that `batches` gives."""


Read = Callable[[Sequence[str], Predicate], Rows]


class Filter:
    """A filter of pyarrow.

    Args:
        expression: None for all rows.
        columns: of the table.
    """

    def __init__(self, topic: str, expression: pc.Expression | None, columns: Columns) -> None:
        self.topic, self.expression = topic, expression
        if expression is not None and not isinstance(expression, pc.Expression):
            raise TableError(f"a filter is a pyarrow.compute.Expression, and this is a {type(expression).__name__}")
        self.predicate: Predicate = Every()
        self.names: tuple[str, ...] = ()
        if expression is None:
            return
        node = arrow_filter.node_of(expression)
        if node is not None:
            self.names = tuple(columns_in(node))
            self.predicate = predicate_of(node, [*META_FIELDS, *columns.key.fields])
            return
        self.predicate = Unknown()
        text = str(expression)
        self.names = tuple(
            columns.schema.names if BY_POSITION in text else [each for each in columns.full_schema.names if each in text]
        )

    @property
    def needs_positions(self) -> bool:
        return self.expression is not None and BY_POSITION in str(self.expression)

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows for which it is true; raises TableError if it does not fit the columns."""
        if self.expression is None:
            return batch
        try:
            return batch.filter(self.expression)
        except (pa.ArrowException, NotImplementedError, TypeError) as error:
            raise TableError(f"the filter does not fit the table {self.topic}: {str(error).splitlines()[0]}") from error


class Reading:
    """The rows of a table that a filter lets through.

    Args:
        read: makes the scan.
        columns: of the table.
        names: of the columns to give; None: all but `_headers` and `_value`.
        most: rows to give; None: all.
        batch_size: most rows of a batch; None: as they come.
    """

    def __init__(
        self,
        topic: str,
        read: Read,
        columns: Columns,
        names: Sequence[str] | None = None,
        expression: pc.Expression | None = None,
        *,
        most: int | None = None,
        batch_size: int | None = None,
    ) -> None:
        if isinstance(names, str | dict):
            raise TableError("columns are a list of names")
        self.filter = Filter(topic, expression, columns)
        self._names = columns.schema.names if names is None else list(names)
        first = columns.schema.names if self.filter.needs_positions else self._names
        needed = list(dict.fromkeys([*first, *self._names, *self.filter.names]))
        known = columns.full_schema
        if all(each in known.names for each in needed):  # a filter that does not fit is found before anything is read
            self.filter.apply(no_rows(pa.schema([known.field(each) for each in needed])))
        self._rows = read(needed, self.filter.predicate)
        self._places = [self._rows.schema.names.index(each) for each in self._names]
        self.schema = pa.schema([self._rows.schema.field(each) for each in self._places])
        self._most, self._batch_size = most, batch_size
        self._topic, self._returned = topic, 0
        self.fault: BarnabasError | None = None  # the error that ended the reading; a library may pass on its text alone

    @property
    def projected_schema(self) -> pa.Schema:
        return self.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, as Arrow batches that are made as they are taken. Raises TableError, BadRecord, ClientError, CorruptLog."""
        try:
            yield from self._batches()
        except BarnabasError as error:
            self.fault = error
            raise

    def _batches(self) -> Iterator[pa.RecordBatch]:
        left = self._most
        if left == 0:
            return
        with closing(self._rows.batches()) as found:  # type: ignore[type-var]  # each implementation is a generator
            for whole in found:
                batch = self.filter.apply(whole)
                if left is not None:
                    batch = batch.slice(0, left)
                    left -= batch.num_rows
                yield from self._pieces(batch)
                if left == 0:
                    return

    def _pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        made = pa.RecordBatch.from_arrays([batch.column(each) for each in self._places], schema=self.schema)
        size = self._batch_size or max(made.num_rows, 1)
        for start in range(0, made.num_rows, size):
            piece = made.slice(start, size)
            self._returned += piece.num_rows
            yield piece

    to_batches = batches

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def to_table(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def head(self, num_rows: int) -> pa.Table:
        """The first rows; the rest is not read."""
        kept, left = [], num_rows
        with closing(self.batches()) as found:  # type: ignore[type-var]  # it is a generator
            for batch in found if left > 0 else ():
                kept.append(batch.slice(0, left))
                left -= kept[-1].num_rows
                if not left:
                    break
        return pa.Table.from_batches(kept, self.schema)

    def count_rows(self) -> int:
        """The number of rows; without a filter and a limit, values are not decoded unless a format may drop some."""
        if self.filter.expression is None and self._most is None:
            return self._rows.count()
        return sum(batch.num_rows for batch in self.batches())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)  # type: ignore[no-untyped-call]  # the stubs leave its types out

    def explain(self) -> Explanation:
        """The offsets to read and to skip; after rows were taken, also the counts of what was read."""
        report, expression = self._rows.report, self.filter.expression
        text = None if expression is None else str(expression)
        used = self._rows.condition if isinstance(self._rows, NewestRows) else self.filter.predicate
        return Explanation.of(self._topic, self._names, text, used, report, self._returned)


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows."""
    return pa.RecordBatch.from_arrays([pa.array([], each.type) for each in schema], schema=schema)
