"""Records in memory as rows of a table: the same columns as a scan of the topic gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import pyarrow as pa

from barnabas.tables.scan import HEADERS, Columns, Scan
from barnabas.tables.source import Snapshot, TopicSource


def can_be_made(columns: Columns, names: Sequence[str]) -> bool:
    """Whether records without their headers are enough."""
    return HEADERS not in names and not columns.key.uses_headers and not columns.value.uses_headers


class MemoryScan(Scan):
    """A scan of records that were read before."""

    def __init__(self, topic: str, columns: Columns, names: Sequence[str], records: pa.RecordBatch) -> None:
        super().__init__(cast(TopicSource, None), Snapshot(topic, "", {}), columns, names)  # nothing is read
        self._held = records

    def _records(self) -> Iterator[pa.RecordBatch]:
        if self._held.num_rows:
            yield self._held

    def batches(self) -> Iterator[pa.RecordBatch]:
        return map(self._batch, self._records())

    def table(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches(self.batches(), self.schema)
