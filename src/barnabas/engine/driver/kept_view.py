"""Takes micro-batches into a view: the flow's state, the view's topic and the progress stay in step. No Spark.

A micro-batch
    1. The flow takes the rows, in an open transaction on its state, and gives the changes of the result.
    2. The sink writes the changes and the progress of the job in one transaction, under the number of the step.
    3. The flow commits.

Rules
  1. The offsets behind a step lie in the state of the flow, and in the progress. So the caller reads from there on, whatever was killed
     (`position.py`). If the sink has a step and the flow does not, the flow takes it again and the sink leaves it out.
  2. Step 0 comes before the first micro-batch and has no rows: a query without groups has a row without any input.
  3. The first rows are written when the view has read what was there at its start: then all of them at once, as the difference to what the
     topic has. So a reader never sees half of a result, and a generation replaces the rows of the one before. A progress record with the
     job's generation tells that this was done.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.client.config import ClientConfig
from barnabas.engine.driver.job_sink import JobSink, sink_rows
from barnabas.engine.driver.position import Position, StreamOffset, by_topic, note_of
from barnabas.engine.driver.rows import ROWS_AT_ONCE, Decoder, Encoder
from barnabas.engine.jobs import Job, JobProgress, ViewWork
from barnabas.incremental.interface import Flow
from barnabas.tables.client_source import ClientSource
from barnabas.tables.declared import columns_of
from barnabas.tables.table import Table

if TYPE_CHECKING:
    from barnabas.schemas.arrow.columns import RegistryAddress


class KeptView:
    """One view.

    Args:
        settings: of the client, with `bootstrap.servers`.
        flow: of the view's plan.
        progress: the last of the job's generation, if there is one.

    Raises:
        FlowError: the state does not fit the progress.
    """

    def __init__(
        self, job: Job, settings: Mapping[str, str], flow: Flow, *, progress: JobProgress | None = None,
        registry: RegistryAddress | None = None, log: logging.Logger | None = None,
    ) -> None:  # fmt: skip
        assert isinstance(job.work, ViewWork)
        self.job, self.work, self.flow = job, job.work, flow
        self.topics = sorted({each.topic for each in self.work.tables.values()})
        self._config = ClientConfig.from_options({**settings, "isolation.level": "read_committed"})
        self._decoder, self._encoder = Decoder(self.work.tables, registry), Encoder(self.work, registry)
        self._sink = JobSink(job, settings, progress)
        self.position = Position(flow.position, flow.note, progress)
        self._log = log or logging.getLogger(__name__)
        self._published = progress is not None
        self._targets: dict[str, dict[int, tuple[int, int]]] = {}

    @property
    def starting_offsets(self) -> str:
        """Where its topics are read from, as the source of Spark takes it."""
        return "earliest"

    @property
    def uses_headers(self) -> bool:
        """Whether the headers of records are needed."""
        return self._decoder.uses_headers

    def begin(self) -> None:
        """Look at what is there, and take step 0. Raises FlowError, ClientError, MicroBatchFailed."""
        if not self._published:
            self._targets = {topic: _ends(topic, self._config) for topic in self.topics}
            for topic, parts in self._targets.items():
                self._sink.offsets[topic] = {partition: start for partition, (start, _) in parts.items()}
        if self.position.offsets is not None:
            self._sink.reach(by_topic(self.position.offsets))
        if self.flow.position < 0:
            self.flow.step(0, {})
            self.flow.commit()
        if not self._published and self._has_caught_up():
            self._publish(self.flow.position, 0, time.monotonic())
        if self._published:
            self.flow.release()

    def take(self, records: pa.Table, end: StreamOffset) -> None:
        """Take a micro-batch as the next step.

        Args:
            records: of all topics, with the columns of Spark's source: those from the position up to `end`.
            end: of `Position.ahead`.

        Raises:
            FlowError, BadRecord, TableError: the rows cannot be taken; nothing remains of the step.
            MicroBatchFailed: they were not written, or the next start completes it.
        """
        began_s, number = time.monotonic(), self.flow.position + 1
        self._sink.reach(by_topic(end))
        try:
            changes = self.flow.step(number, self._decoder.inputs(records), note_of(end))
            self._sink.count(records.num_rows)
            if self._published:
                batches = self._encoder.records(changes).to_batches(ROWS_AT_ONCE)
                self._write(number, batches, records.num_rows, changes.num_rows, began_s)
            self.flow.commit()
        except BaseException:
            self.flow.rollback()
            raise
        self.position.reach(end)
        took_ms = (time.monotonic() - began_s) * 1000
        self._log.info(
            "event=batch number=%d rows=%d changes=%d took_ms=%.0f", number, records.num_rows, changes.num_rows, took_ms
        )
        if not self._published and self._has_caught_up():
            self._publish(number, records.num_rows, began_s)

    def _has_caught_up(self) -> bool:
        return all(
            self._sink.offsets.get(topic, {}).get(partition, start) >= end
            for topic, parts in self._targets.items()
            for partition, (start, end) in parts.items()
        )

    def _publish(self, number: int, rows: int, began_s: float) -> None:
        """Write the difference between the result and what the topic has."""
        result = self.flow.snapshot()
        self._write(number, self._replacing(result), rows, result.num_rows, began_s)
        self._published = True
        self.flow.release()
        self._log.info("event=published rows=%d", result.num_rows)

    def _replacing(self, result: pa.Table) -> Iterator[pa.RecordBatch]:
        made = self._encoder.records(result)
        old = _newest_keys(self.work, self._config)
        gone = old.filter(pc.invert(pc.is_in(old, made.column("key").combine_chunks())))
        yield from made.to_batches(ROWS_AT_ONCE)
        yield sink_rows(gone, pa.nulls(len(gone), pa.binary()), self.work.topic)

    def _write(self, number: int, batches: Iterable[pa.RecordBatch], rows_in: int, rows_out: int, began_s: float) -> None:
        self._sink.write(number, batches, rows_in, rows_out, self.flow.size(), began_s, late_rows=self.flow.late())

    def close(self) -> None:
        """Release the state."""
        self.flow.close()


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
