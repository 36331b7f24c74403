"""Runs a task of a source: one thread reads from the source, another one writes what was read, each time in one transaction with the
offsets behind it.

Rules
  1. What was read while a transaction was written goes into the next one, so transactions grow with the load.
  2. A source that is read faster than the log takes it waits.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.connect.api import Batch, Source
from barnabas.connect.converters.header_converters import encoded as encoded_headers
from barnabas.connect.converters.json_text import text_of
from barnabas.connect.converters.registry import converter, header_converter
from barnabas.connect.errors import ConnectError
from barnabas.connect.runtime.dead_letters import ensure_topic
from barnabas.connect.runtime.records import encoded, records_of
from barnabas.connect.runtime.retries import Retries
from barnabas.connect.runtime.settings import PRODUCER, TaskSettings
from barnabas.connect.runtime.source_offsets import SourceOffsets
from barnabas.connect.runtime.task import Task
from barnabas.connect.runtime.tolerance import POLL, ROW, VALUE, Failure, Tolerance, each_or_all, transformed
from barnabas.connect.runtime.transaction import TransactionalWriter
from barnabas.connect.store.connect_topics import created_offsets_topic
from barnabas.connect.topic_creation import TopicCreation
from barnabas.connect.transforms.chain import Chain
from barnabas.engine.jobs import Job
from barnabas.errors import KafkaError
from barnabas.pipelines.sink_options import sink_options

MOST_WAITING = 8  # batches that were read and are not written
MOST_ROWS = 100_000  # that are read before a transaction begins, unless one batch has more
LOOK_S = 0.2
SETTLED_S = 5.0  # a source that has read nothing for so long, and has not failed, works: before, it may wait for its connection
FIRST_REST_S, LONGEST_REST_S = 0.01, 1.0  # of a source that has nothing at the moment
COLUMNS = {"key": "binary", "value": "binary", "topic": "string", "partition": "int"}


class _End:
    """The source has no more."""


class _Transaction:
    """What one transaction has: rows of the source, and by the key of its record the last batch of each partition with its offset."""

    def __init__(self) -> None:
        self.rows = 0
        self.latest: dict[bytes, tuple[Batch, bytes | None]] = {}


class SourceTask(Task):
    """See the module.

    Args:
        source: that it reads.
        config: parsed by the source's definitions.
    """

    def __init__(self, job: Job, settings: TaskSettings, log: logging.Logger, source: Source, config: Mapping[str, Any]) -> None:
        super().__init__(job, settings, log)
        self._source, self._config = source, config
        given = settings.work.config
        self._topic = given.get("topic")
        self._key = converter(given, settings.work.worker, is_key=True)
        self._value = converter(given, settings.work.worker, is_key=False)
        self._headers = header_converter(given, settings.work.worker)
        self._chain = Chain(given, self._headers)
        self._creation, self._used = TopicCreation(given, settings.work.worker), set[str]()
        self._tolerance = Tolerance(given, settings.work.task, log)
        self._retries = Retries(given, self.stopping, log)
        options = sink_options({**settings.options(PRODUCER), "exactlyOnce": "false"}, COLUMNS, streaming=True)
        self._writer = TransactionalWriter(options.task, settings.transactional_id)
        self._client = BlockingClient(replace(ClientConfig.from_options(settings.client), read_committed=True))
        self._offsets = SourceOffsets(self._client, settings.offsets_topic, settings.work.connector)
        self._read: queue.Queue[Batch | _End | BaseException] = queue.Queue(MOST_WAITING)
        self._reader: threading.Thread | None = None
        self._began_s = 0.0

    def open(self) -> None:
        settings = self.settings
        self._client.ensure_topic(created_offsets_topic(settings.offsets_topic, settings.work.worker))
        self._writer.begin()
        begun, self._began_s = self._offsets.read(), time.monotonic()
        self._reader = threading.Thread(target=self._read_all, args=(begun,), name=f"source-{self.job.name}", daemon=True)
        self._reader.start()

    def _read_all(self, begun: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> None:
        """The thread that reads."""
        rest_s = FIRST_REST_S
        try:
            for batch in self._source.read(self._config, begun):
                if self.stopping.is_set():
                    return
                if batch is None:
                    self.settle()
                    self.stopping.wait(rest_s)
                    rest_s = min(2 * rest_s, LONGEST_REST_S)
                else:
                    rest_s = FIRST_REST_S
                    self._pass_on(batch)
            self._pass_on(_End())
        except BaseException as error:  # noqa: BLE001 - the thread that writes raises it
            self._pass_on(error)

    def _pass_on(self, item: Batch | _End | BaseException) -> None:
        while not self.stopping.is_set():
            try:
                self._read.put(item, timeout=LOOK_S)
            except queue.Full:
                if isinstance(item, Batch):
                    self._source.keep_alive()
            else:
                return

    def work(self) -> None:
        while not self.stopping.is_set():
            batches, end = self._taken()
            if batches:
                self._write(batches)
                self.settle()
            elif end is None:
                self.idle()
            if isinstance(end, BaseException):
                raise end
            if end is not None:
                self.log.info("event=source-has-no-more")
                while not self.stopping.wait(LOOK_S):
                    self.idle()

    def idle(self) -> None:
        if time.monotonic() - self._began_s >= SETTLED_S:
            self.settle()
        self.tell()

    def _taken(self) -> tuple[list[Batch], _End | BaseException | None]:
        """The batches that were read, up to a limit of rows; and what came behind them.

        The last one has an offset, unless the limit came first: `_rest` has the others then.
        """
        batches: list[Batch] = []
        rows, wait_s, is_whole = 0, LOOK_S, True
        while rows < MOST_ROWS:
            try:
                item = self._read.get(timeout=wait_s) if wait_s else self._read.get_nowait()
            except queue.Empty:
                if is_whole or self.stopping.is_set():
                    return _whole(batches), None
                continue
            if not isinstance(item, Batch):
                return _whole(batches), item
            batches.append(item)
            rows, is_whole = rows + len(item.rows), item.offset is not None
            wait_s = 0.0 if is_whole else LOOK_S
        return batches, None

    def _rest(self, last: Batch) -> Iterator[Batch]:
        """The batches that belong into one transaction with one without an offset. Raises ConnectError if they do not come."""
        while last.offset is None:
            try:
                item = self._read.get(timeout=LOOK_S)
            except queue.Empty:
                if self.stopping.is_set():
                    raise ConnectError("the task ends within a transaction of its source") from None
                continue
            if isinstance(item, BaseException):
                raise item
            if isinstance(item, _End):
                raise ConnectError("the source ends within one of its transactions")
            yield item
            last = item

    def _write(self, batches: Sequence[Batch]) -> None:
        began_s = time.monotonic()
        taken = _Transaction()
        written = self._writer.write(self._records(chain(batches, self._rest(batches[-1])), taken)) - len(taken.latest)
        for each, _ in taken.latest.values():
            if each.offset is not None and not each.forgets:
                self._source.committed(each.partition, each.offset)
        self.count(taken.rows, written)
        self.log.info("event=batch rows=%d took_ms=%.0f", taken.rows, (time.monotonic() - began_s) * 1000)

    def _records(self, batches: Iterable[Batch], taken: _Transaction) -> Iterator[pa.RecordBatch]:
        for each in batches:
            taken.rows += len(each.rows)
            if each.offset is not None:
                key, value = self._offsets.record(each.partition, None if each.forgets else each.offset)
                taken.latest[key] = each, value
            if each.rejected:
                yield from self._rejected(each)
            if len(each.rows):
                for made in self._retries.tried(partial(self._encoded, records_of(each, self._topic))):
                    self._use([str(each) for each in pc.unique(made.column("topic")).to_pylist()])
                    yield made
        latest = taken.latest
        columns: dict[str, Any] = {
            "key": pa.array(list(latest), pa.binary()),
            "value": pa.array([value for _, value in latest.values()], pa.binary()),
            "topic": pa.repeat(self.settings.offsets_topic, len(latest)),
        }
        yield pa.record_batch(columns)

    def _use(self, topics: Sequence[str]) -> None:
        """Take note of topics, and create those that the config says how to create. Raises ConnectError."""
        for each in topics:
            wanted = None if each in self._used else self._creation.wanted(each)
            if wanted is not None:
                try:
                    self._client.ensure_topic(wanted)
                except KafkaError as error:
                    raise ConnectError(f"topic.creation: the topic {each} cannot be created: {error}") from None
            self._used.add(each)
        self.use(topics)

    def _rejected(self, batch: Batch) -> list[pa.RecordBatch]:
        """The dead letters of what is no record. Raises ConnectError if errors are not tolerated."""
        count, what = len(batch.rejected), type(self._source).__name__
        columns: dict[str, Any] = {
            "key": pa.nulls(count, pa.binary()),
            "value": pa.array([data for data, _ in batch.rejected], pa.binary()),
            "topic": pa.repeat(batch.topic or self._topic or "", count),
        }
        failures = [Failure(row, POLL, what, reason) for row, (_, reason) in enumerate(batch.rejected)]
        return self._buried(pa.table(columns), failures)

    def _buried(self, raw: pa.Table, failures: Sequence[Failure]) -> list[pa.RecordBatch]:
        letters = self._tolerance.handle(raw, failures)
        if letters is None:
            return []
        ensure_topic(self._client, self._tolerance)
        return [letters]

    def _encoded(self, records: pa.Table) -> list[pa.RecordBatch]:
        """Records as bytes, and the dead letters of those that fail. Raises ConnectError for one, unless errors are tolerated."""
        records = encoded_headers(records, self._headers)
        tolerates, raw = self._tolerance.tolerates, records
        if not tolerates:
            return encoded(self._chain.apply(records), self._key, self._value)
        records = records.append_column(ROW, pa.array(range(records.num_rows), pa.int64()))
        records, failures = transformed(self._chain, records, tolerates=True)
        made: list[pa.RecordBatch] = []

        def encode(some: pa.Table) -> pa.Table:
            made.extend(encoded(some, self._key, self._value))
            return some

        _, more = each_or_all(encode, records, VALUE, type(self._value).__name__, tolerates=True)
        return [*made, *self._buried(_as_texts(raw), [*failures, *more])]

    def interrupt(self) -> None:
        self._source.close()

    def hindrance(self) -> str | None:
        return self._retries.hindrance

    def release(self) -> None:
        if self._reader is not None:
            self._reader.join(LOOK_S * 10)
        self._writer.close()
        self._client.close()


def _whole(batches: list[Batch]) -> list[Batch]:
    """The batches up to the last one that has an offset."""
    end = next((at for at in range(len(batches), 0, -1) if batches[at - 1].offset is not None), 0)
    return batches[:end]


def _as_texts(records: pa.Table) -> pa.Table:
    """Records that could not be encoded, with their keys and values as JSON texts."""
    columns: dict[str, Any] = {}
    for name in ("key", "value"):
        found = records.column(name).to_pylist() if name in records.column_names else [None] * records.num_rows
        columns[name] = pa.array([None if each is None else text_of(each) for each in found], pa.binary())
    columns["topic"] = records.column("topic")
    if "headers" in records.column_names:
        columns["headers"] = records.column("headers")
    return pa.table(columns)
