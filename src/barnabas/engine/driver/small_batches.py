"""Reads small micro-batches in the driver itself: a job of Spark takes a hundred times longer than the read of a few records.

Rules
  1. The reader is that of Spark's tasks, so the records are the same, whoever reads them.
  2. Spark reads what is large, what has many partitions, and what begins where the plan has no offset: a partition that was added.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadMaxRows

from barnabas.engine.driver.position import StreamOffset
from barnabas.pipelines.offsets import from_stream_offset
from barnabas.pipelines.source import TopicStreamReader

MOST_RECORDS = 100_000
MOST_PARTITIONS = 16  # with records; they are read one after the other
NO_RECORDS = pa.table({})


class SmallBatches:
    """Reads for one query, or for one job.

    Args:
        options: of the query's source.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._reader = TopicStreamReader(options)

    def initial(self) -> StreamOffset:
        """The offsets of `startingOffsets`. Raises ClientError."""
        return self._reader.initialOffset()

    def latest(self, start: StreamOffset, most_rows: int) -> StreamOffset:
        """The offsets behind the records that are there, or behind about so many.

        Raises:
            DataLoss: records behind `start` are gone.
            ClientError: no answer in time.
        """
        end = self._reader.latestOffset(start, ReadMaxRows(most_rows))
        if end != start:
            self._reader.partitions(start, end)
        return end

    def read(self, start: StreamOffset, end: StreamOffset) -> pa.Table | None:
        """The records between two offsets of the plan, or None if Spark should read them.

        Raises:
            DataLoss: records are gone.
            ClientError: no answer in time.
        """
        if not is_small(start, end):
            return None
        parts = self._reader.partitions(start, end)
        batches = [batch for part in parts if part.value.range.size for batch in self._reader.read(part)]
        return pa.Table.from_batches(batches) if batches else NO_RECORDS

    def close(self) -> None:
        """Release the client."""
        self._reader.stop()


def is_small(start: StreamOffset, end: StreamOffset) -> bool:
    """Whether the driver should read the records between two offsets."""
    first, last = from_stream_offset(start)[0], from_stream_offset(end)[0]
    if not last.keys() <= first.keys():
        return False
    sizes = [offset - first[tp] for tp, offset in last.items() if offset != first[tp]]
    return len(sizes) <= MOST_PARTITIONS and sum(map(abs, sizes)) <= MOST_RECORDS


def offsets_of(progress: Any) -> StreamOffset:
    """The offset of the only source in a `StreamProgress` of the JVM; empty if it has none."""
    return next((json.loads(each.json()) for each in _values(progress)), {})


def _values(of_scala: Any) -> Iterator[Any]:
    """The values of a map of Scala."""
    found = of_scala.values().iterator()
    while found.hasNext():
        yield found.next()
