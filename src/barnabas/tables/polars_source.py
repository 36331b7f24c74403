"""A table as a source of Polars: columns, conditions and limits are pushed into the scan."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import polars as pl
import pyarrow as pa
from polars.io.plugins import register_io_source

from barnabas.tables import polars_filter
from barnabas.tables.expression import predicate_of
from barnabas.tables.predicate import Every, Predicate
from barnabas.tables.reading import Read
from barnabas.tables.scan import META_FIELDS, Columns


def lazy_frame(read: Read, columns: Columns) -> pl.LazyFrame:
    """A table as a lazy frame. Each run reads it again, at the same offsets.

    Args:
        read: makes a scan of a snapshot.
        columns: of the table.
    """
    schema = pl.Schema(_frame(columns.schema.empty_table()).schema)
    names = list(schema)

    def frames(
        wanted: list[str] | None, condition: pl.Expr | None, most: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        needed = names if wanted is None else list(wanted)
        extra = [] if condition is None else [each for each in condition.meta.root_names() if each not in needed]
        # Polars counts the limit before the condition: then no row may be left out before it is counted.
        predicate: Predicate = Every()
        if condition is not None and most is None:
            predicate = predicate_of(polars_filter.node_of(condition), [*META_FIELDS, *columns.key.fields])
        left = most
        with closing(read([*needed, *extra], predicate).batches()) as batches:  # type: ignore[type-var]  # it is a generator
            for batch in batches if left != 0 else ():
                frame = _frame(pa.Table.from_batches([batch]))
                if left is not None:
                    frame = frame.head(left)
                    left -= frame.height
                if condition is not None:
                    frame = frame.filter(condition)
                yield frame.select(needed)
                if left == 0:
                    return

    return register_io_source(frames, schema=schema, is_pure=True)


def _frame(table: pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame
