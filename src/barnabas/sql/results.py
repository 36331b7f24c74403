"""The outcomes of statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from barnabas.sql.interface import SqlError
from barnabas.sql.states import NOT_SUPPORTED, OUT_OF_RANGE


class Done:
    """A statement without rows."""

    schema: pa.Schema | None = None

    def __init__(self, tag: str) -> None:
        self.tag = tag

    def batches(self) -> Iterator[pa.RecordBatch]:
        return iter(())

    def close(self) -> None:
        pass


class Listing:
    """Rows that are there already.

    Args:
        tag: of the statement, such as `SHOW`.
    """

    def __init__(self, tag: str, schema: pa.Schema, rows: pa.Table) -> None:
        self.tag, self.schema = tag, schema
        self._rows = rows

    @classmethod
    def of(cls, tag: str, columns: Mapping[str, Sequence[str | None]]) -> Listing:
        """Columns of text."""
        rows = pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
        return cls(tag, rows.schema, rows)

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from self._rows.to_batches()

    def close(self) -> None:
        pass


class Streamed:
    """Rows that DuckDB makes as they are taken.

    Args:
        close: called once, after the last row or when the rest is not wanted.
        translate: makes a SqlError of an error of DuckDB or of a table.
    """

    def __init__(
        self,
        schema: pa.Schema,
        batches: Iterator[pa.RecordBatch],
        close: Callable[[], None],
        translate: Callable[[Exception], SqlError],
        tag: str = "SELECT",
    ) -> None:
        self.schema, self.tag = schema, tag
        self._batches, self._close, self._translate = batches, close, translate
        self._open = True

    def batches(self) -> Iterator[pa.RecordBatch]:
        try:
            while True:
                try:
                    batch = next(self._batches, None)
                except SqlError:
                    raise
                except Exception as error:
                    raise self._translate(error) from error
                if batch is None:
                    return
                if batch.num_rows:
                    yield fitted(batch, self.schema)
        finally:
            self.close()

    def close(self) -> None:
        if self._open:
            self._open = False
            self._close()


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with these types. Raises SqlError for a value that is out of range."""
    if batch.schema == schema:
        return batch
    columns: list[Any] = []
    for column, wanted in zip(batch.columns, schema, strict=True):
        if column.type == wanted.type:
            columns.append(column)
            continue
        try:
            columns.append(column.cast(wanted.type))
        except pa.ArrowInvalid as error:
            raise SqlError(
                OUT_OF_RANGE, f"a value of the column {wanted.name} is out of range for {wanted.type}", detail=str(error)
            ) from None
        except pa.ArrowException as error:
            raise SqlError(
                NOT_SUPPORTED, f"the values of the column {wanted.name} cannot be shown as {wanted.type}", detail=str(error)
            ) from None
    return pa.RecordBatch.from_arrays(columns, schema=schema)
