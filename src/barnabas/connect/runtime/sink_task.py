"""Runs a task of a sink: reads records of its partitions, and gives them to the sink batch by batch.

Of several tasks, each has the partitions whose number it has by the number of tasks (`sink_reader.py` reads them). The records of each
topic are a batch of their own, because those of another topic may have other types under the same names. After a kill a batch comes
again with the same records, so a sink can know it by its identity.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.client.results import TopicPartition
from barnabas.connect.api import Identity, Sink
from barnabas.connect.converters.header_converters import decoded as decoded_headers
from barnabas.connect.converters.registry import converter, header_converter
from barnabas.connect.errors import BadRecords
from barnabas.connect.runtime.dead_letters import DeadLetters
from barnabas.connect.runtime.retries import Retries
from barnabas.connect.runtime.settings import CONSUMER, TaskSettings
from barnabas.connect.runtime.sink_reader import BegunAnew, Ranges, SinkReader
from barnabas.connect.runtime.task import Task
from barnabas.connect.runtime.tolerance import HEADER, KEY, PUT, ROW, VALUE, Failure, Tolerance, transformed
from barnabas.connect.transforms.chain import Chain
from barnabas.connect.transforms.interface import column, with_column
from barnabas.engine.jobs import Job
from barnabas.pipelines.options import read_options

WAIT_MS = 1_000  # for records; they end the wait


class SinkTask(Task):
    """See the module.

    Args:
        sink: that gets the records.
        config: parsed by the sink's definitions.
    """

    def __init__(self, job: Job, settings: TaskSettings, log: logging.Logger, sink: Sink, config: Mapping[str, Any]) -> None:
        super().__init__(job, settings, log)
        self._sink, self._config = sink, config
        given = settings.work.config
        self._key = converter(given, settings.work.worker, is_key=True)
        self._value = converter(given, settings.work.worker, is_key=False)
        self._headers = header_converter(given, settings.work.worker)
        self._chain = Chain(given)
        self._transforms = bool(given.get("transforms", "").strip())
        self._tolerance = Tolerance(given, settings.work.task, log)
        self._retries = Retries(given, self.stopping, log)
        self._letters = DeadLetters(self._tolerance, settings)
        self._options = read_options(
            {
                **settings.options(CONSUMER),
                **settings.topics,
                "startingOffsets": settings.start,
                "waitForRecordsMs": str(WAIT_MS),
                "includeHeaders": "true",
                "failOnDataLoss": "false",
                "commitOffsets": "false",
            },
            streaming=True,
        )
        self._reader: SinkReader | None = None
        self._is_closed = False

    def open(self) -> None:
        own = self._sink.open(self._config) or {}
        self._reader = SinkReader(self._options, self.settings.group, self._is_mine, own, self._pre_commit)

    def _pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        return self._retries.tried(lambda: self._sink.pre_commit(offsets), without_end=True)

    def _is_mine(self, place: TopicPartition) -> bool:
        work = self.settings.work
        return (crc32(place[0].encode()) + place[1]) % work.tasks == work.task

    def work(self) -> None:
        assert self._reader is not None
        try:
            self._work(self._reader)
        except BegunAnew as error:
            # the next start reads the offsets of the group and of the target again
            type(self._sink).alter_offsets(self._config, error.begins)
            self._reader.begin_anew(error.begins)
            raise

    def _work(self, reader: SinkReader) -> None:
        while not self.stopping.is_set():
            batch = reader.next()
            if batch is None:
                self.idle()
                reader.wait()
                continue
            began_s = time.monotonic()
            read, ranges = batch
            written = 0
            for part, its in _by_topic(read, ranges):
                records = self._ready(part)
                self._write(part, records, Identity(self.settings.work.connector, its))
                written += records.num_rows
            reader.done()
            self.settle()
            self.use(topic for topic, _ in ranges)
            self.count(read.num_rows, written)
            self.log.info("event=batch rows=%d took_ms=%.0f", read.num_rows, (time.monotonic() - began_s) * 1000)

    def _ready(self, read: pa.Table) -> pa.Table:
        """The records of a batch, converted and transformed. Raises ConnectError for one that fails, unless errors are tolerated."""
        records, failures = read.append_column(ROW, pa.array(range(read.num_rows), pa.int64())), []
        for name, stage, each in (("key", KEY, self._key), ("value", VALUE, self._value)):
            found = self._retries.tried(partial(each.decode, column(records, name)))
            failures += [Failure(row, stage, type(each).__name__, reason) for row, reason in found.bad.items()]
            records = with_column(records, name, found.column, found.metadata)
        records, unread = decoded_headers(records, self._headers)
        failures += [Failure(row, HEADER, type(self._headers).__name__, reason) for row, reason in unread.items()]
        if failures:
            bad = pa.array(sorted({each.row for each in failures}), pa.int64())
            records = records.filter(pc.invert(pc.is_in(column(records, ROW), value_set=bad))).combine_chunks()
        records, more = transformed(self._chain, records, tolerates=self._tolerance.tolerates)
        self._bury(read, [*failures, *more])
        if self._transforms and ROW in records.column_names:
            records = with_column(records, "original_topic", column(read, "topic").take(column(records, ROW)))
        return records

    def _bury(self, read: pa.Table, failures: list[Failure]) -> None:
        """Write dead letters. Raises ConnectError if errors are not tolerated."""
        letters = self._tolerance.handle(read, failures)
        if letters is not None:
            self._letters.write(letters)

    def _write(self, read: pa.Table, records: pa.Table, identity: Identity) -> None:
        while True:
            shown = records.drop_columns([ROW]) if ROW in records.column_names else records
            try:
                self._retries.tried(partial(self._sink.write, shown, identity), without_end=True)
            except BadRecords as error:
                if ROW not in records.column_names:
                    raise
                rows: list[Any] = column(records, ROW).to_pylist()
                what = type(self._sink).__name__
                self._bury(read, [Failure(rows[each], PUT, what, reason) for each, reason in error.reasons.items()])
                kept = [each for each in range(records.num_rows) if each not in error.reasons]
                records = records.take(pa.array(kept, pa.int64())).combine_chunks()
            else:
                return

    def hindrance(self) -> str | None:
        return self._retries.hindrance

    def leave(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._sink.close()

    def release(self) -> None:
        self.leave()  # of a thread that has not ended in time
        if self._reader is not None:
            self._reader.close()
        self._letters.close()


def _by_topic(read: pa.Table, ranges: Ranges) -> Iterator[tuple[pa.Table, Ranges]]:
    """The records of each topic that has some, with its ranges of offsets."""
    topics = list(dict.fromkeys(topic for topic, _ in ranges))
    if len(topics) == 1:
        yield read, ranges
        return
    for topic in topics:
        part = read.filter(pc.equal(column(read, "topic"), pa.scalar(topic))).combine_chunks()
        if part.num_rows:
            yield part, {place: bounds for place, bounds in ranges.items() if place[0] == topic}
