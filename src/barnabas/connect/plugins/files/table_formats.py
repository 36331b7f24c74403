"""Formats of files that are read by their rows: Avro and Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import IO, Any, Protocol

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from barnabas.connect.errors import ConnectError
from barnabas.schemas.arrow.avro_shapes import shape_of
from barnabas.schemas.avro_codec import AvroCodec
from barnabas.schemas.errors import SchemaDataError

ROWS_AT_ONCE = 50_000
_BROKEN_AVRO = (
    ValueError,
    EOFError,
    KeyError,
    IndexError,
    TypeError,
    AttributeError,
    OverflowError,
)  # what damaged bytes make fastavro raise


class TableFormat(Protocol):
    """A format of rows."""

    def rows(self, file: IO[bytes], position: int) -> Iterator[pa.Table]:
        """Records from that row on, with the column `value`. Raises ConnectError for a file that is damaged."""


class Parquet:
    """See `TableFormat`. Groups of rows before the position are not read."""

    def rows(self, file: IO[bytes], position: int) -> Iterator[pa.Table]:
        try:
            found = pq.ParquetFile(file)
            first, before = 0, 0
            while first < found.num_row_groups and before + found.metadata.row_group(first).num_rows <= position:
                before += found.metadata.row_group(first).num_rows
                first += 1
            skipped = position - before
            groups = list(range(first, found.num_row_groups))
            for batch in found.iter_batches(ROWS_AT_ONCE, row_groups=groups):
                kept = batch.slice(skipped)
                skipped = max(0, skipped - batch.num_rows)
                if kept.num_rows:
                    yield pa.table({"value": kept.to_struct_array()})
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:  # of the disk; Arrow's own have no number
                raise
            raise ConnectError(f"no Parquet file: {_line(error)}") from None


class Avro:
    """See `TableFormat`: object container files."""

    def rows(self, file: IO[bytes], position: int) -> Iterator[pa.Table]:
        try:
            reader = fastavro.reader(file)
            shape = shape_of(AvroCodec(reader.writer_schema))
            rows: Iterator[Any] = islice(iter(reader), position, None)
            while some := list(islice(rows, ROWS_AT_ONCE)):
                values = some if shape.to_arrow is None else [None if each is None else shape.to_arrow(each) for each in some]
                yield pa.table({"value": pa.array(values, shape.type)})
        except (*_BROKEN_AVRO, SchemaDataError, pa.ArrowException) as error:
            raise ConnectError(f"no Avro file: {_line(error)}") from None


def _line(error: Exception) -> str:
    return str(error).split("\n", 1)[0] or type(error).__name__
