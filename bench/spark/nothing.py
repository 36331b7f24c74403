"""A source and a sink in Python that cost almost nothing: their rates are the maximum in Spark for a source and a sink in Python.

The source returns the same rows from memory repeatedly, with the columns of the compared sources. The sink drops its batches.
So the difference to their rates is the cost of the barnabas code, and the rest is that of Spark.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from barnabas.pipelines.source import COLUMNS

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType

NAME = "nothing"
BATCH_ROWS = 1 << 16  # rows of one Arrow batch; the JVM reaches its best speed from 50,000 rows on
Offsets = dict[str, int]  # partition -> offset


class NothingDataSource(DataSource):
    """Options: `rows`, `partitions`, `size` of a value in bytes, `maxOffsetsPerTrigger`, `startingOffset` of a stream, and
    `rowsPerSecond` for a stream with rows that arrive over time."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.options = options

    def schema(self) -> str:
        return COLUMNS

    def reader(self, schema: StructType) -> NothingReader:
        return NothingReader(self.options)

    def streamReader(self, schema: StructType) -> NothingStreamReader:
        return NothingStreamReader(self.options)

    def writer(self, schema: StructType, overwrite: bool) -> LettingGo:
        return LettingGo()

    def streamWriter(self, schema: StructType, overwrite: bool) -> LettingGoOfStreams:
        return LettingGoOfStreams()


class Rows(InputPartition):
    """The number of rows of a partition, and the size of a value in bytes."""

    def __init__(self, partition: int, count: int, size: int) -> None:
        super().__init__((partition, count, size))


def rows_of(partition: InputPartition) -> Iterator[RecordBatch]:
    import pyarrow as pa

    number, count, size = partition.value
    held = min(count, BATCH_ROWS)
    columns: dict[str, Any] = {
        "key": pa.nulls(held, pa.binary()),
        "value": pa.array([b"0" * size] * held, pa.binary()),
        "topic": pa.array(["nothing"] * held, pa.string()),
        "partition": pa.array([number] * held, pa.int32()),
        "offset": pa.array(range(held), pa.int64()),
        "timestamp": pa.array([1_700_000_000_000_000] * held, pa.timestamp("us", tz="UTC")),
        "timestampType": pa.array([0] * held, pa.int32()),
    }
    batch = pa.RecordBatch.from_pydict(columns)
    for first in range(0, count, BATCH_ROWS):
        yield batch.slice(0, min(BATCH_ROWS, count - first))


class NothingReader(DataSourceReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._partitions, self._rows, self._size = (int(options[name]) for name in ("partitions", "rows", "size"))

    def partitions(self) -> Sequence[InputPartition]:
        return [Rows(number, self._rows // self._partitions, self._size) for number in range(self._partitions)]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        return rows_of(partition)


class NothingStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._partitions, self._rows, self._size = (int(options[name]) for name in ("partitions", "rows", "size"))
        self._first = int(options.get("startingOffset", "0"))
        self._limit = int(options["maxOffsetsPerTrigger"]) if "maxOffsetsPerTrigger" in options else None
        self._rate = float(options.get("rowsPerSecond", "inf"))
        self._began_s = time.monotonic()

    def initialOffset(self) -> Offsets:
        return {str(number): self._first for number in range(self._partitions)}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self._limit is None else ReadMaxRows(self._limit)

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        end = self._rows // self._partitions
        if math.isfinite(self._rate):
            end = min(end, self._first + int((time.monotonic() - self._began_s) * self._rate) // self._partitions)
        if isinstance(limit, ReadAllAvailable) or self._limit is None:
            return dict.fromkeys(start, end)
        share = self._limit // self._partitions
        return {number: min(at + share, end) for number, at in start.items()}

    def prepareForTriggerAvailableNow(self) -> None:
        """Does nothing: the number of rows never grows."""

    def reportLatestOffset(self) -> Offsets:
        return dict.fromkeys(map(str, range(self._partitions)), self._rows // self._partitions)

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        return [Rows(int(number), end[number] - start[number], self._size) for number in end if end[number] > start[number]]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        return rows_of(partition)

    def commit(self, end: Offsets) -> None:
        """Does nothing: offsets are not stored."""


def let_go(batches: Iterator[RecordBatch]) -> WriterCommitMessage:
    for _ in batches:
        pass
    return WriterCommitMessage()


class LettingGo(DataSourceArrowWriter):
    def write(self, iterator: Iterator[RecordBatch]) -> WriterCommitMessage:  # type: ignore[override]  # Spark narrows the types too
        return let_go(iterator)


class LettingGoOfStreams(DataSourceStreamArrowWriter):
    def write(self, iterator: Iterator[RecordBatch]) -> WriterCommitMessage:  # type: ignore[override]  # Spark narrows the types too
        return let_go(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Does nothing: there is nothing to store."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Does nothing: there is nothing to undo."""
