"""A view's job: one streaming query of Spark, whose micro-batches change the result in its topic.

A micro-batch
    1. Spark plans it, keeps its offsets in the checkpoint, and reads the records.
    2. The flow takes the rows, in an open transaction on its state, and gives the changes of the result.
    3. The sink writes the changes and the progress of the job in one transaction, under the number of the step.
    4. The flow commits.

Rules
  1. After a kill Spark repeats the last micro-batch with the same offsets. If the flow has it, it is done. If the sink has it and the flow
     does not, the flow takes it again and the sink leaves it out.
  2. Step 0 comes before the first micro-batch and has no rows: a query without groups has a row without any input.
  3. The first rows are written when the job has read what was there at its start: then all of them at once, as the difference to what the
     topic has. So a reader never sees half of a result, and a job that starts from nothing replaces the rows of the one before. A
     progress record with the job's generation tells that this was done.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.client.config import ClientConfig
from barnabas.engine.driver.rows import Decoder, Encoder
from barnabas.engine.driver.running_job import one_line
from barnabas.engine.jobs import PROGRESS, Job, JobProgress, ViewWork, encode
from barnabas.incremental.interface import Flow
from barnabas.pipelines.offsets import from_stream_offset
from barnabas.pipelines.stream_writer import MicroBatches
from barnabas.tables.client_source import ClientSource
from barnabas.tables.declared import columns_of
from barnabas.tables.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from barnabas.schemas.arrow.columns import RegistryAddress

Offsets = dict[str, dict[int, int]]
ROWS_AT_ONCE = 100_000
IDLE_WAIT_MS = 2_000  # an idle job asks so often; records end the wait


class ViewJob:
    """Runs one view.

    Args:
        settings: of the client, with `bootstrap.servers`.
        folder: of this generation: Spark's checkpoint lies in it, beside the state.
        flow: of the view's plan.
        progress: the last of the job, if there is one.
    """

    def __init__(
        self,
        spark: SparkSession,
        job: Job,
        settings: Mapping[str, str],
        folder: Path,
        flow: Flow,
        *,
        progress: JobProgress | None = None,
        registry: RegistryAddress | None = None,
        log: logging.Logger | None = None,
    ) -> None:
        assert isinstance(job.work, ViewWork)
        self.job, self.work, self.flow = job, job.work, flow
        self._spark, self._settings, self._folder = spark, dict(settings), folder
        self._log = log or logging.getLogger(__name__)
        self.error: BaseException | None = None  # that ended the query, as it was raised
        self._config = ClientConfig.from_options({**settings, "isolation.level": "read_committed"})
        self._decoder, self._encoder = Decoder(self.work.tables, registry), Encoder(self.work)
        self._sink = MicroBatches(self._sink_options(), _sink_schema())
        known = progress if progress is not None and progress.generation == job.generation else None
        self._published = known is not None
        self._targets: dict[str, dict[int, tuple[int, int]]] = {}
        self._offsets: Offsets = {} if known is None else _of_progress(known)
        self._total_in, self._total_out = (0, 0) if known is None else (known.total_in, known.total_out)
        self.query: StreamingQuery | None = None

    def start(self) -> StreamingQuery:
        """Begin, or go on.

        Raises:
            FlowError, PartitionError, ClientError: it cannot.
        """
        topics = sorted({each.topic for each in self.work.tables.values()})
        if not self._published:
            self._targets = {topic: _ends(topic, self._config) for topic in topics}
        if self.flow.position < 0:
            self.flow.step(0, {})
            self.flow.commit()
        if not self._published and self._has_caught_up():
            self._publish(0, 0, time.monotonic())
        context = self._spark.sparkContext
        context.setLocalProperty("spark.scheduler.pool", self.job.pool or f"job-{self.job.name}")
        stream = (
            self._spark.readStream.format("barnabas")
            .option("subscribe", ",".join(topics))
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", self.work.most_rows)
            .option("includeHeaders", self._decoder.uses_headers)
            .option("commitOffsets", False)
            .option("waitForRecordsMs", IDLE_WAIT_MS)
            .options(**{f"kafka.{name}": value for name, value in self._settings.items()})
            .load()
        )
        writer = stream.writeStream.queryName(self.job.name).option("checkpointLocation", str(self._folder / "checkpoint"))
        self.query = writer.foreachBatch(self._micro_batch).start()
        return self.query

    def _micro_batch(self, frame: DataFrame, batch: int) -> None:
        try:
            self._take(frame, batch)
        except BaseException as error:
            self.error = error
            raise

    def _take(self, frame: DataFrame, batch: int) -> None:
        began = time.monotonic()
        number = batch + 1
        self._advance()
        if number > self.flow.position:
            records = frame.toArrow()
            self._total_in += records.num_rows
            try:
                changes = self.flow.step(number, self._decoder.inputs(records))
                if self._published:
                    self._write(number, self._changed(changes), records.num_rows, changes.num_rows, began)
                self.flow.commit()
            except BaseException:
                self.flow.rollback()
                raise
            took_ms = (time.monotonic() - began) * 1000
            self._log.info(
                "event=batch number=%d rows=%d changes=%d took_ms=%.0f", number, records.num_rows, changes.num_rows, took_ms
            )
        if not self._published and self._has_caught_up():
            self._publish(number, 0, began)

    def _advance(self) -> None:
        """Take note of the offsets behind the running micro-batch: those that Spark has planned."""
        query = self.query or next(each for each in self._spark.streams.active if each.name == self.job.name)
        for planned in _values(query._jsq.streamingQuery().availableOffsets()):
            for (topic, partition), end in from_stream_offset(json.loads(planned.json()))[0].items():
                self._offsets.setdefault(topic, {})[partition] = end

    def _has_caught_up(self) -> bool:
        return all(
            self._offsets.get(topic, {}).get(partition, start) >= end
            for topic, parts in self._targets.items()
            for partition, (start, end) in parts.items()
        )

    def _publish(self, number: int, rows: int, began: float) -> None:
        """Write the difference between the result and what the topic has."""
        result = self.flow.snapshot()
        self._write(number, self._replacing(result), rows, result.num_rows, began)
        self._published = True
        self._log.info("event=published rows=%d", result.num_rows)

    def _replacing(self, result: pa.Table) -> Iterator[pa.RecordBatch]:
        made = self._encoder.records(result)
        old = _newest_keys(self.work, self._config)
        gone = old.filter(pc.invert(pc.is_in(old, made.column("key").combine_chunks())))
        yield from made.to_batches(ROWS_AT_ONCE)
        yield _sink_rows(gone, pa.nulls(len(gone), pa.binary()), self.work.topic)

    def _changed(self, changes: pa.Table) -> Iterator[pa.RecordBatch]:
        yield from self._encoder.records(changes).to_batches(ROWS_AT_ONCE)

    def _write(self, number: int, batches: Iterator[pa.RecordBatch], rows_in: int, rows_out: int, began: float) -> None:
        self._total_out += rows_out
        size = self.flow.size()
        progress = JobProgress(
            self.job.name,
            self.job.generation,
            number,
            {topic: {str(partition): end for partition, end in parts.items()} for topic, parts in self._offsets.items()},
            rows_in,
            rows_out,
            self._total_in,
            self._total_out,
            size.rows,
            size.size,
            round((time.monotonic() - began) * 1000, 1),
            time.time_ns() // 1_000_000,
        )

        def all_of_it() -> Iterator[pa.RecordBatch]:
            yield from batches
            yield _sink_rows(pa.array([self.job.name.encode()], pa.binary()), pa.array([encode(progress)], pa.binary()), PROGRESS)

        self._sink.write_here(all_of_it(), f"job-{self.job.generation}", number)

    def _sink_options(self) -> dict[str, str]:
        kafka = {f"kafka.{name}": value for name, value in self._settings.items()}
        return {**kafka, "sinkName": f"job-{self.job.name}-{self.job.generation}"}

    def failure(self) -> str | None:
        """Why the query has ended, in one line; None while it runs."""
        if self.query is None or self.query.isActive:
            return None
        error = self.error or self.query.exception()
        return "the query ended" if error is None else one_line(error)

    def stop(self) -> None:
        """End the query after its micro-batch, and release the state."""
        if self.query is not None:
            self.query.stop()
        self.flow.close()


def _sink_schema() -> Any:
    from pyspark.sql.types import StructType

    return StructType().add("key", "binary").add("value", "binary").add("topic", "string")


def _sink_rows(keys: Any, values: Any, topic: str) -> pa.RecordBatch:
    return pa.record_batch({"key": keys, "value": values, "topic": pa.repeat(topic, len(keys))})


def _values(of_scala: Any) -> Iterator[Any]:
    """The values of a map of Scala."""
    found = of_scala.values().iterator()
    while found.hasNext():
        yield found.next()


def _of_progress(progress: JobProgress) -> Offsets:
    return {topic: {int(partition): end for partition, end in parts.items()} for topic, parts in progress.offsets.items()}


def _ends(topic: str, config: ClientConfig) -> dict[int, tuple[int, int]]:
    source = ClientSource(topic, config)
    try:
        return {partition: (bounds.start, bounds.end) for partition, bounds in source.snapshot().partitions.items()}
    finally:
        source.close()


def _newest_keys(work: ViewWork, config: ClientConfig) -> Any:
    """The keys that the topic of a view has."""
    with Table(ClientSource(work.topic, config), columns_of(work.topic)) as table:
        return table.newest_by_key().arrow(["_key"]).column("_key").combine_chunks()
