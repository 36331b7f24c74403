"""Records in memory as rows of a table: the same columns as a scan of the topic gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import pyarrow as pa
from msgspec import structs

from barnabas.tables.scan import HEADERS, Columns, Scan
from barnabas.tables.source import Snapshot, TopicSource


def can_be_made(columns: Columns, names: Sequence[str]) -> bool:
    """Whether records without their headers are enough."""
    return HEADERS not in names and not columns.key.uses_headers and not columns.value.uses_headers


class MemoryScan(Scan):
    """A scan of records that were read before."""

    def __init__(self, topic: str, columns: Columns, names: Sequence[str], records: pa.RecordBatch) -> None:
        self.topic = topic
        super().__init__(cast(TopicSource, None), Snapshot(topic, "", {}), columns, names)  # nothing is read
        self._held = records

    def _records(self) -> Iterator[pa.RecordBatch]:
        if self._held.num_rows:
            yield self._held

    def batches(self) -> Iterator[pa.RecordBatch]:
        return map(self._batch, self._records())

    def every_row(self) -> tuple[pa.Table, pa.Array[Any]]:
        """A row of each record, and whether `table` leaves it out because it does not fit. Raises BadRecord in the mode `fail`."""
        if self._columns.mode != "drop":
            found = self.table()
            return found, pa.array([False] * found.num_rows, pa.bool_())
        reasons = self._reasons(self._held)
        made = MemoryScan(self.topic, structs.replace(self._columns, mode="permissive"), self._names, self._held).table()
        none = pa.array([False] * made.num_rows, pa.bool_())
        return made, none if reasons is None else reasons.is_valid()

    def table(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches(self.batches(), self.schema)
