"""The classes of the data source `barnabas` that Spark calls: batch and stream, read and write. They contain no decisions.

The import of this module takes only 20 ms, because Spark imports it at every look-up of a format. The methods import the
modules that the driver and the tasks need.

Ugly: the parameters of `streamWriter` and `writer` must have exactly these names, because Spark passes them by name; and Spark
passes options with names in lower case.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from barnabas.pipelines.bounds import EVERYTHING, Bounds
from barnabas.pipelines.offsets import OffsetRange, Offsets, OptionError, from_stream_offset, stream_offset, to_json
from barnabas.pipelines.options import ReadOptions, include_headers, read_options
from barnabas.pipelines.runs.progress import ProgressFile

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

    from barnabas.pipelines.planner import Planner
    from barnabas.pipelines.read_task import ReadTask
    from barnabas.pipelines.sink import BatchWriter, StreamWriter

COLUMNS = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
HEADERS = ", headers array<struct<key: string, value: binary>>"
PUSHING_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"


class BarnabasDataSource(DataSource):
    """Topics as tables and streams, with the options and columns of Spark's own `kafka` source."""

    @classmethod
    def name(cls) -> str:
        return "barnabas"

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.options = options

    def schema(self) -> str:
        return COLUMNS + HEADERS if include_headers(self.options) else COLUMNS

    def reader(self, schema: StructType) -> TopicReader:
        self._check_schema(schema)
        return FilteringTopicReader(self.options) if _filters_come() else TopicReader(self.options)

    def streamReader(self, schema: StructType) -> TopicStreamReader:
        self._check_schema(schema)
        return TopicStreamReader(self.options)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        from barnabas.pipelines.sink import BatchWriter

        if overwrite:
            raise OptionError(
                "Save mode Overwrite not allowed for Kafka. Allowed save modes are Append and ErrorIfExists (default)."
            )
        return BatchWriter(self.options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        from barnabas.pipelines.sink import StreamWriter

        return StreamWriter(self.options, schema)

    def _check_schema(self, schema: StructType) -> None:
        expected = 8 if include_headers(self.options) else 7
        if len(schema) != expected or schema.fieldNames()[:2] != ["key", "value"]:
            raise OptionError("Kafka source has a fixed schema and cannot be set with a custom one")


class TopicPartitionTask(InputPartition):
    """The input of one task."""

    def __init__(self, task: ReadTask) -> None:
        super().__init__(task)


def _filters_come() -> bool:
    """Whether Spark started this process to push filters to the source.

    If spark.sql.python.filterPushdown.enabled is off, Spark refuses a reader that accepts filters, but the source cannot read
    this setting. If it is on and there are filters, Spark uses another worker module, which shows the setting.
    """
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return PUSHING_WORKER in sys.modules or (main is not None and main.name == PUSHING_WORKER)


def _tasks(options: ReadOptions, ranges: Sequence[OffsetRange], topic_ids: Mapping[str, str]) -> list[InputPartition]:
    from barnabas.pipelines.read_task import ReadTask

    return [
        TopicPartitionTask(
            ReadTask(
                range=each,
                client=options.client,
                include_headers=options.include_headers,
                fail_on_data_loss=options.fail_on_data_loss,
                poll_timeout_ms=options.poll_timeout_ms,
                max_batch_bytes=options.max_batch_bytes,
                topic_id=topic_ids.get(each.topic, ""),
            )
        )
        for each in ranges
    ]


def _read(partition: InputPartition) -> Iterator[RecordBatch]:
    from barnabas.pipelines.reading import read_range

    if partition.value is None:  # Spark creates one partition without a value if the source has none
        return iter(())
    return read_range(partition.value)


class TopicReader(DataSourceReader):
    """A batch query."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = read_options(options, streaming=False)
        self._bounds: Bounds = EVERYTHING

    def partitions(self) -> Sequence[InputPartition]:
        from barnabas.pipelines.planner import Planner

        planner = Planner(self._options)
        try:
            return _tasks(self._options, planner.batch_ranges(self._bounds), planner.topic_ids)
        finally:
            planner.close()

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        return _read(partition)


class FilteringTopicReader(TopicReader):
    """A batch query to which Spark offers its filters."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        from barnabas.pipelines.pushdown import bounds_of

        if self._options.resolve_in_tasks:
            return filters
        self._bounds, left = bounds_of(filters)
        return left

    def __getstate__(self) -> dict[str, Any]:
        # a task gets its range separately, so the bounds are not needed
        return {"_options": self._options, "_bounds": EVERYTHING}


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming query. Spark calls it in the driver's process for offsets; tasks get a copy without the planner."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = read_options(options, streaming=True)
        self._planner: Planner | None = None
        self._progress: ProgressFile | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_planner": None, "_progress": None}

    @property
    def planner(self) -> Planner:
        from barnabas.pipelines.planner import Planner

        if self._planner is None:
            self._planner = Planner(self._options)
            self._progress = ProgressFile.of_environment(self._options.group_id)
        return self._planner

    def initialOffset(self) -> dict[str, Any]:
        return stream_offset(self.planner.initial(), self.planner.topic_ids)

    def getDefaultReadLimit(self) -> ReadLimit:
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(self._options.max_bytes_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        offsets, ids = from_stream_offset(start)
        everything = isinstance(limit, ReadAllAvailable)
        end = self._latest(offsets, ids, everything=everything)
        if end == offsets and self.planner.wait_for_records(end):
            end = self._latest(offsets, ids, everything=everything)
        if self._progress is not None:
            self._progress.record(offsets, self.planner.reported_latest() or end, time.time())
        return start if end == offsets and not self.planner.replaced(ids) else stream_offset(end, self.planner.topic_ids)

    def _latest(self, offsets: Offsets, ids: Mapping[str, str], *, everything: bool) -> Offsets:
        return self.planner.latest(offsets, everything=everything, now_ms=time.monotonic() * 1000, start_ids=ids)

    def prepareForTriggerAvailableNow(self) -> None:
        self.planner.prepare_available_now()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        offsets = self.planner.reported_latest()
        return None if offsets is None else to_json(offsets)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        (first, first_ids), (last, last_ids) = from_stream_offset(start), from_stream_offset(end)
        return _tasks(self._options, self.planner.stream_ranges(first, last, first_ids, last_ids), last_ids)

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        return _read(partition)

    def commit(self, end: dict[str, Any]) -> None:
        self.planner.commit(from_stream_offset(end)[0])

    def stop(self) -> None:
        if self._planner is not None:
            self._planner.close()
            self._planner = None
